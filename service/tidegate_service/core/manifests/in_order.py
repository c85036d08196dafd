"""Whoever makes manifests beside the hook may put older ones in the place of newer ones.

A manifest that is replaced does not say of which version it is. So whoever has made manifests of a
version, and was not alone at it, sets the hook's cursor back to that version afterwards: all that
was touched since is then made again, after the last of the older ones was put.
"""

import asyncio

from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.observe.telemetry import HOOK
from tidegate_service.core.ports.upkeep.upkeep import UpkeepStanding

NAME = "symlink-manifests"
"""The hook's name, which no other one has."""
KIND = HOOK + NAME
WITHIN_S = 60.0
ASKED_EVERY_S = 0.5


async def set_back(
    upkeep: UpkeepStanding, table_id: str, version: int, *, within_s: float = WITHIN_S
) -> None:
    """Have the hook make again what was touched since the version, where it has come further. A run
    of it that is under way is waited for: it would save its own cursor. Raises
    `StorageUnavailable` where that does not end in time: the manifests may be of two versions."""
    until = asyncio.get_running_loop().time() + within_s
    while not await upkeep.set_back(table_id, KIND, to=version):
        if asyncio.get_running_loop().time() > until:
            raise StorageUnavailable(
                "the table's manifests are also written after a commit, and some may be of an "
                "older version; ask for them again"
            )
        await asyncio.sleep(ASKED_EVERY_S)

"""Whether a folder holds what belongs to a log."""

import asyncio
from collections.abc import Callable

from tidegate_protocol.log.file_names import Unknown, parse
from tidegate_service.core.sharing.pools import Share
from tidegate_service.storage.expired import SIDECARS
from tidegate_service.storage.roots import Root

STAGED = "_staged_commits"
_FOLDERS_OF_A_LOG = (SIDECARS, STAGED, "_commits")
"""The last one is what `_staged_commits` was called before."""


async def holds_log(root: Root, folder: str, share: Share, *, but: str | None = None) -> bool:
    """Whether a `_delta_log` has anything that `core.ports.store.storage.Log.holds_anything` names,
    other than the file `but`. Raises as `Root.entries` does."""

    def is_log_file(name: str) -> bool:
        return not isinstance(parse(name), Unknown) and name != but

    below = (f"{folder}/{name}" for name in _FOLDERS_OF_A_LOG)
    looks = [
        asyncio.ensure_future(look)
        for look in (
            _holds(root, folder, share, is_log_file),
            *(_holds(root, each, share, lambda _: True) for each in below),
        )
    ]
    try:
        return any(await asyncio.gather(*looks))
    finally:
        for look in looks:
            look.cancel()


async def _holds(root: Root, folder: str, share: Share, wanted: Callable[[str], bool]) -> bool:
    async for batch in root.entries(folder, share):
        if any(wanted(entry.name) for entry in batch):
            return True
    return False

"""Which tables are being forgotten, so that one instance goes on with what another was cut off in.

Forgetting itself is one transaction, and may be begun any number of times: a claim saves time, and
nothing rests on it.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from tidegate_service.core.access.roles import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """What somebody asked for, claimed by the name `claim`; `failures` is how often others could
    not go on with it."""

    table_id: str
    by: Caller
    claim: str
    failures: int


class Forgettings(Protocol):
    """Calls raise `IndexUnavailable`, and do nothing where claim or table are gone."""

    async def keep(self, table_id: str, *, by: Caller) -> str:
        """Keep that a table is being forgotten; returns the new claim on that."""
        ...

    def held(self, table_id: str, claim: str) -> AbstractAsyncContextManager[None]:
        """Renew the claim as long as the context lasts. It is lost for good to whoever claimed it
        meanwhile. A failure to renew it costs time only, and is not raised."""
        ...

    async def drop(self, table_id: str, claim: str) -> None:
        """The forgetting has ended without the table's end."""
        ...

    async def next(self) -> Forgetting | None:
        """Claim a forgetting whose claim nobody renewed, the one that was asked for first; None
        where there is none."""
        ...

    async def put_off(self, table_id: str, claim: str, *, again_in_s: float) -> None:
        """Have it claimed again after that time, by anybody."""
        ...


class _NotKept:
    async def keep(self, table_id: str, *, by: Caller) -> str:
        return ""

    def held(self, table_id: str, claim: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def drop(self, table_id: str, claim: str) -> None:
        return None

    async def next(self) -> Forgetting | None:
        return None

    async def put_off(self, table_id: str, claim: str, *, again_in_s: float) -> None:
        return None


NOT_KEPT: Forgettings = _NotKept()
"""What is cut off has to be asked for again."""

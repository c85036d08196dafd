"""Which versions of a table a hook is run for: all, or those at which the table names it."""

from dataclasses import dataclass
from typing import Protocol

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.hooks import named_hooks
from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import UpkeepIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What holds of the versions behind some version, up to `through`."""

    through: int
    is_run: bool


class WhichVersions(Protocol):
    """Asked for one span after the other."""

    async def span(self, table: TableRecord, *, after: int) -> Span:
        """That of the version right behind `after`, which is published."""
        ...


class EveryVersion:
    """Implements `WhichVersions` for a hook of the settings."""

    async def span(self, table: TableRecord, *, after: int) -> Span:
        return Span(through=table.published_version, is_run=True)


class WhereNamed:
    """Implements `WhichVersions` for a hook that tables name: it is run for a version if the table
    names it as that version leaves it."""

    def __init__(self, name: str, index: Index, upkeep: UpkeepIndex) -> None:
        self._name = name
        self._index = index
        self._upkeep = upkeep

    async def span(self, table: TableRecord, *, after: int) -> Span:
        first, last = after + 1, table.published_version
        state = await self._index.state_at(table.id, first)
        if state is None or state.metadata is None:
            raise NotFound(
                f"there is no version {first} of the table any more", code=Code.VERSION_NOT_FOUND
            )
        changed = await self._upkeep.changed_metadata(table.id, after=first)
        return Span(
            through=last if changed is None else min(last, changed - 1),
            is_run=self._name in named_hooks(state.metadata.configuration),
        )

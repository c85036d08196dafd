"""How things stand: what is asked for when somebody looks, not counted on the way."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_service.core.ports.records import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The index's tables. `tables` counts them by (catalog-managed, state);
    `unpublished` are the ratified versions that are not in their logs yet, and
    `publish_lag_s` is how long the oldest of them has waited, by the database's clock."""

    tables: Mapping[tuple[bool, TableState], int]
    unpublished: int
    publish_lag_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Connections of this instance to the index: `size` are kept at most, `overflow` are open
    beyond that; each open one is `in_use` or `idle`."""

    size: int
    overflow: int
    in_use: int
    idle: int

"""What a listing of a store tells."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One file of a `_delta_log` folder; `size` in bytes, `modified_ms` by the store's clock."""

    name: str
    size: int
    modified_ms: int

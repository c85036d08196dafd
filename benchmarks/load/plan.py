"""What the load generator is told and what it tells; JSON between two processes."""

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    APPEND = "append"
    OVERWRITE = "overwrite"


class Plan(Struct, frozen=True, kw_only=True):
    """`writers` connections, each with one request under way at a time.

    Writer i works on table i modulo their number: it appends one file a commit, or overwrites
    partition i with one file. `seconds` are measured, or as many more as it takes for a commit a
    writer. `watched` are processes by name, whose CPU time is taken, with
    everything below them, over the measured time.
    """

    host: str
    port: int
    tables: tuple[str, ...]
    kind: Kind
    writers: int
    warm_up_s: float
    seconds: float
    name: str
    """Of this load; ids and paths of no two loads are the same."""
    watched: dict[str, int]


class Told(Struct, frozen=True, kw_only=True):
    """`commits` are those answered within `seconds`, the measured time, all with 201 and with
    distinct versions; `requests` all that were answered meanwhile, `conflicts` the 409s of them,
    `refused` the 429s. `latencies_ms` are of the commits, at 50, 90, 99 and 100 %. `ended_at` is
    the clock (`time.monotonic`) at the last answer."""

    commits: int
    requests: int
    conflicts: int
    refused: int
    seconds: float
    latencies_ms: dict[str, float]
    cpu_s: dict[str, float]
    busy_s: float
    ended_at: float
    acked: dict[str, int]
    """By table, warm-up included."""

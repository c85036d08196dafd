"""How much is read of a table's log, and how long a store may take."""

from dataclasses import dataclass

from tidegate_service.core.log.log_file import LARGE_BYTES
from tidegate_service.storage.checkpoints.limits import DEFAULTS as CHECKPOINTS
from tidegate_service.storage.checkpoints.limits import CheckpointLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLimits:
    """A commit file has at most `commit_bytes` and `actions`, other files that are read whole
    `small_bytes`. At most `files` are listed of a log, `listed` at a time.

    A request to an object store takes `call_s` at most, retries included. That is below the ten
    seconds after which Postgres ends a transaction whose owner is silent, since requests are made
    under a plain table's row lock. A PUT takes `put_s` at most, and longer for its bytes: one
    without an answer is settled by the same PUT again, for which there must be time.

    A conditional PUT has no parts, so contents above `large_bytes` are held in one piece while they
    are sent: `joined_bytes` of them all together. One of a GiB may have been a few MiB in all other
    places.
    """

    commit_bytes: int = 1024**3
    actions: int = 1_000_000
    small_bytes: int = 64 * 1024**2
    files: int = 1_000_000
    listed: int = 1000
    call_s: float = 8.0
    put_s: float = 4.0
    large_bytes: int = LARGE_BYTES
    joined_bytes: int = 2 * 1024**3
    checkpoints: CheckpointLimits = CHECKPOINTS


DEFAULTS = StorageLimits()

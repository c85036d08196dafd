"""How much is read of a table's log and its checkpoints, and how long a store may take."""

from dataclasses import dataclass

from tidegate_service.core.log.files.log_file import LARGE_BYTES, MAX_LINE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLimits:
    """The actions of all checkpoint files that are read of a log at a time may be `free_bytes` as
    JSON, and `ratio` times what the files are: those of real tables are ten to thirty times. They
    are `bytes` in any case, which are some sixty million files.

    A file has at most `columns` leaf columns, as many as a schema may have fields, and lines and
    values of at most `line_bytes`. A row group has at most `pages` pages, of all its columns: those
    of real checkpoints have some hundred. One page decodes to `page_bytes` at most, and the pages
    that are held at a time (one of each column and its dictionary) to `pages_bytes`.

    The lists and maps of a row group have at most `list_values` values: one row may have them all,
    and each takes some bytes for what it is in. They decode to `lists_bytes` at most, but for those
    of which every value is in a dictionary.

    A batch has at most `rows` rows. Their lists and maps become objects in parts of `part_values`,
    which take some ten milliseconds.

    A Parquet file has a process that reads it, which may take `memory_bytes`.
    """

    free_bytes: int = 64 * 1024**2
    ratio: int = 100
    bytes: int = 64 * 1024**3
    columns: int = 10_000
    line_bytes: int = MAX_LINE_BYTES
    pages: int = 100_000
    page_bytes: int = 64 * 1024**2
    pages_bytes: int = 512 * 1024**2
    list_values: int = 32_000_000
    lists_bytes: int = 512 * 1024**2
    rows: int = 4096
    part_values: int = 10_000
    memory_bytes: int = 1536 * 1024**2


CHECKPOINT_LIMITS = CheckpointLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLimits:
    """A commit file has at most `commit_bytes` and `actions`, other files that are read whole
    `small_bytes`. At most `files` are listed of a log, `listed` at a time.

    A request to an object store takes `call_s` at most, retries included. That is below the ten
    seconds after which Postgres ends a transaction whose owner is silent, since requests are made
    under a plain table's row lock. A PUT takes `put_s` at most, and longer for its bytes: one
    without an answer is settled by the same PUT again, for which there must be time.

    A local disk is slow where syncing a file takes longer than `slow_s`. A quick one needs a tenth
    of that, and half of it for the first of many files, which waits for the file system's journal.
    More threads cost 10 to 50 us a file: more than they save only there.

    What has more than `large_bytes` is read and written a piece at a time. A conditional PUT has no
    parts, so such contents are held in one piece while they are sent: `joined_bytes` of them all
    together. One of a GiB may have been a few MiB in all other
    places.

    At most `readers` Parquet checkpoints are read at a time, each by a process that may take
    `CheckpointLimits.memory_bytes`.

    Logs around a location are looked for within `above_s`, whosever these are.

    A start waits `probe_s` for the places beside the warehouse. A place that cannot be used is
    tried again after `probe_rest_s`, and after twice as long each time, `probe_longest_rest_s` at
    most.
    """

    commit_bytes: int = 1024**3
    actions: int = 1_000_000
    small_bytes: int = 64 * 1024**2
    files: int = 1_000_000
    listed: int = 1000
    call_s: float = 8.0
    put_s: float = 4.0
    slow_s: float = 0.0005
    large_bytes: int = LARGE_BYTES
    joined_bytes: int = 2 * 1024**3
    readers: int = 16
    above_s: float = 5.0
    probe_s: float = 10.0
    probe_rest_s: float = 1.0
    probe_longest_rest_s: float = 30.0
    checkpoints: CheckpointLimits = CHECKPOINT_LIMITS


DEFAULTS = StorageLimits()

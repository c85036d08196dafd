"""How much of a checkpoint is read, and how much of it at a time."""

from dataclasses import dataclass

from tidegate_service.core.log.log_file import MAX_LINE_BYTES


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


DEFAULTS = CheckpointLimits()

"""A data file as the log has it once some of its rows are deleted."""

from msgspec import Raw, json, to_builtins

from tidegate_protocol.log.actions import Add, DeletionVector
from tidegate_protocol.log.codec import with_fields

_TIGHT_BOUNDS = "tightBounds"


def marked(file: Add, vector: DeletionVector | None) -> Add:
    """The file with this vector in the place of its own; its bounds need not be reached by the rows
    that are left (PROTOCOL.md, "Per-file Statistics"). Where there is none, they stay as loose as
    they were."""
    changes = {"deletionVector": None if vector is None else to_builtins(vector)}
    if vector is not None and file.stats is not None:
        stats = json.decode(file.stats, type=dict[str, Raw])
        changes["stats"] = json.encode(stats | {_TIGHT_BOUNDS: False}).decode()
    return with_fields(file, changes)

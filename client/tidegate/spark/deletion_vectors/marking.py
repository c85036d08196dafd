"""A data file as the log has it once some of its rows are deleted."""

from msgspec import Raw, json, to_builtins

from tidegate_protocol.log.actions import Add, DeletionVector
from tidegate_protocol.log.codec import with_fields

_NUM_RECORDS = "numRecords"
_TIGHT_BOUNDS = "tightBounds"


def marked(file: Add, vector: DeletionVector | None, *, num_records: int | None = None) -> Add:
    """The file with this vector in the place of its own; its bounds need not be reached by the rows
    that are left (PROTOCOL.md, "Per-file Statistics"). Where there is none, they stay as loose as
    they were. `num_records` are the rows that the file holds, for one whose statistics do not tell:
    one with a vector has to."""
    changes: dict[str, object] = {
        "deletionVector": None if vector is None else to_builtins(vector),
        "dataChange": True,
    }
    if vector is not None and (file.stats is not None or num_records is not None):
        stats: dict[str, object] = {} if num_records is None else {_NUM_RECORDS: num_records}
        stats |= json.decode(file.stats or "{}", type=dict[str, Raw])
        changes["stats"] = json.encode(stats | {_TIGHT_BOUNDS: False}).decode()
    return with_fields(file, changes)

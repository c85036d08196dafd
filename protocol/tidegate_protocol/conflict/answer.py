"""How a conflict is told: its sentence and its partition hint."""

from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Metadata, PartitionValues
from tidegate_protocol.proposal.transaction import Conflict, ReadState, WinningCommit
from tidegate_protocol.schema.table_schema import parse_schema, physical_name


def conflict(
    code: Code,
    winner: WinningCommit,
    what: str,
    *,
    path: str | None = None,
    partition: PartitionValues | None = None,
    read_file: str | None = None,
    read_vector: str | None = None,
    app_id: str | None = None,
    domain: str | None = None,
) -> Conflict:
    """The conflict with this winner; `what` goes on from "version 7 (DELETE) ..."."""
    return Conflict(
        code=code,
        detail=f"{_name(winner)} {what}",
        winner=winner,
        path=path,
        partition=partition,
        read_file=read_file,
        read_vector=read_vector,
        app_id=app_id,
        domain=domain,
    )


def cannot_check(winner: WinningCommit, what: str) -> Conflict:
    """The conflict with a winner that the rules do not understand."""
    return Conflict(
        code=Code.PROTOCOL_CHANGED,
        detail=f"cannot judge: {_name(winner)} {what}",
        winner=winner,
    )


def partition_hint(
    metadata: Metadata | None, values: PartitionValues | None
) -> PartitionValues | None:
    """Partition column names to the text of a file's values, null where the file has none.

    None where the table is not partitioned or the file does not say (a remove written without
    extended metadata).
    """
    if metadata is None or not metadata.partition_columns or not values:
        return None
    schema = parse_schema(metadata.schema_string)
    hint: PartitionValues = {}
    for name in metadata.partition_columns:
        column = schema.field(name)
        hint[name] = values.get(name if column is None else physical_name(column))
    return hint


def with_hint(answer: Conflict, read: ReadState, values: PartitionValues | None) -> Conflict:
    """The conflict over a file that was read, told its partition values at the read version."""
    hint = partition_hint(read.metadata, values)
    return replace(answer, partition=hint, read_file=None, read_vector=None)


def _name(winner: WinningCommit) -> str:
    operation = f" ({winner.operation})" if winner.operation else ""
    return f"version {winner.version}{operation}"

"""Beginning a vacuum: what is refused before anything is listed."""

from collections.abc import Mapping

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.operations import VACUUM_START
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_protocol.schema.table_schema import parse_schema, physical_name
from tidegate_service.core.commit.propose import conflict_check
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.observe.faults import AnyStep, VacuumStep
from tidegate_service.core.observe.ports_with_faults import Method, with_faults
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.data_names import is_hidden
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.place_rights import check_above, is_shared
from tidegate_service.core.vacuum.commits import proposal_of
from tidegate_service.core.vacuum.inventory import InventoryFiles
from tidegate_service.core.vacuum.request import (
    VacuumRequest,
    check_table,
    horizon,
    retention_ms,
)
from tidegate_service.core.vacuum.vacuum import Vacuum

DELETING: Mapping[Method, AnyStep] = {
    DataFiles.delete: VacuumStep.V3_DELETE,
    DataFiles.remove_empty_folders: VacuumStep.V4_FOLDERS,
}


async def begin_vacuum(context: Context, ref: str, request: VacuumRequest) -> Vacuum:
    """Raises `NotFound`, `Refused` for a retention that is too short or reaches behind the index,
    and `Unavailable`, all before anything is listed."""
    table = await get_table(context, ref)
    check_table(table)
    # What others have committed past the service is read in, and the log is looked at.
    checked = await conflict_check(context, table.id, proposal_of(context, VACUUM_START, {}, {}))
    if isinstance(checked, Conflict | Invalid):
        raise Refused(f"table {table.name} cannot be vacuumed: {checked.detail}", code=checked.code)
    table = await get_table(context, table.id)
    check_table(table)
    retain_ms = retention_ms(table, request)
    share = context.scan_threads.of(context.caller.principal.name)
    weight = offload.weight_of_metadata(table.metadata)
    columns = await offload.run(weight, _partition_columns, table)
    has_iceberg = _has_iceberg(table)
    in_shared_folder = is_shared(context, table.location)
    await check_above(context, table.location)
    if in_shared_folder and request.inventory is not None:
        raise Refused(
            f"table {table.name} lies where others may have files, and its vacuum has to see them: "
            "expected no inventory but of an admin of everything ('*'), or of the folder's "
            "scope",
            code=Code.INVALID_REQUEST,
        )
    files = context.storage.data_files(
        table.location,
        partition_columns=columns,
        has_iceberg=has_iceberg,
        is_shared=in_shared_folder,
        who=context.who,
    )
    if request.inventory is not None:
        files = InventoryFiles(
            files,
            request.inventory,
            location=table.location,
            hides=lambda path: is_hidden(path, columns, has_iceberg=has_iceberg),
            share=share,
        )
    return Vacuum(
        context=context,
        table=table,
        request=request,
        horizon=await horizon(context, table, retain_ms),
        files=with_faults(files, context.faults, DELETING),
        share=share,
    )


def _has_iceberg(table: TableRecord) -> bool:
    """Whether the table is, or may be, shown as an Iceberg one too, whose metadata lies beside the
    data (Delta: `UniversalFormat.icebergEnabled`)."""
    if table.metadata is None:
        return False
    properties = table.metadata.configuration
    return "iceberg" in properties.get("delta.universalFormat.enabledFormats", "").lower() or any(
        name.startswith("delta.enableIceberg") and text.lower() == "true"
        for name, text in properties.items()
    )


def _partition_columns(table: TableRecord) -> frozenset[str]:
    """By both of their names, where they have two."""
    if table.metadata is None or not table.metadata.partition_columns:
        return frozenset()
    names = frozenset(table.metadata.partition_columns)
    fields = parse_schema(table.metadata.schema_string).fields
    return names | {physical_name(field) for field in fields if field.name in names}

"""Column mapping taken from a table: all of its files are written again under the names that its
columns have (Delta: RemoveColumnMappingCommand)."""

from dataclasses import replace

from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.features.backfill import Begin
from tidegate.spark.columns.conform import unchanged
from tidegate.spark.commands.target import Target, size_of, vectors_of
from tidegate.spark.data_files.staging import private_folder
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.expressions.instant import Instant
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.tables.refusals import check_readable
from tidegate.spark.tables.row_ids import kept_tag
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write_options import FileOptions
from tidegate_protocol.features.column_mapping import MARKS, without_marks
from tidegate_protocol.features.properties import COLUMN_MAPPING_MAX_ID
from tidegate_protocol.proposal.operations import REMOVE_COLUMN_MAPPING
from tidegate_protocol.scan.clustering import columns_at, domain_of
from tidegate_protocol.schema.data_types import walk
from tidegate_protocol.schema.table_schema import to_json

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
_OF_NO_PARQUET = " ,;{}()\n\t="
"""Characters that names in files must not have, by Delta's rule."""


def remove_mapping(begin: Begin) -> None:
    """Write all files again, under the columns' own names, and take the ids and physical names out
    of the schema, in one commit; nothing where there are none.

    Whatever adds files meanwhile, or removes some, is a conflict. Raises `InvalidCommand` for names
    that files cannot have, `UnsupportedTable`, and what OPTIMIZE and `Transaction.commit` raise.
    """
    alteration = begin()
    layout = alteration.layout
    if not (layout.is_mapped or _is_marked(alteration)):
        return
    _check_names(alteration)
    if layout.properties.change_data_feed:
        raise InvalidCommand(
            "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
            f"Operation {REMOVE_COLUMN_MAPPING} is not allowed when the table {layout.name} has "
            "enabled change data feed (CDF) and writes files under other names",
            hint="set delta.enableChangeDataFeed to false first",
        )
    spark, transaction = alteration.spark, alteration.transaction
    check_readable(layout, alteration.protocol)
    files = transaction.filter_files()
    of_mapping = (COLUMN_MAPPING_MODE, COLUMN_MAPPING_MAX_ID)
    known = alteration.metadata.configuration
    alteration.set_metadata(
        {
            "schemaString": to_json(without_marks(layout.schema)),
            "configuration": {k: v for k, v in known.items() if k not in of_mapping},
        }
    )
    after = writable_layout(transaction)
    if after.clustering:
        clustered = columns_at(layout.schema, after.clustering)
        own = columns_at(after.schema, [column.path for column in clustered])
        transaction.action(domain_of(own))
        after = replace(after, clustering=tuple(column.physical_path for column in own))
    target = Target(
        spark=spark,
        transaction=transaction,
        layout=layout,
        alias=layout.name,
        instant=Instant(spark),
    )
    with (
        target.passes(REMOVE_COLUMN_MAPPING) as passes,
        private_folder(transaction, after, spark) as folder,
    ):
        passes.writes(len(files), of=len(files))
        rows = rows_of_files(spark, layout, files, is_whole=True, with_ids=True)
        written = folder.write(unchanged(rows, after), FileOptions(data_change=False))
        target.check_all_there(files, rows=written.rows)
        transaction.add(written.adds)
        transaction.remove(files, data_change=False)
        transaction.commit(
            REMOVE_COLUMN_MAPPING,
            metrics={
                "numRewrittenFiles": str(len(files)),
                "numOutputBytes": str(written.size),
                "numRemovedBytes": str(size_of(files)),
                "numCopiedRows": str(written.rows),
                "numDeletionVectorsRemoved": str(vectors_of(files)),
            },
            user_metadata=metadata_of(alteration.user_metadata, spark),
            tags=kept_tag(transaction.head.metadata),
        )


def _is_marked(alteration: Alteration) -> bool:
    fields = walk(alteration.layout.schema)
    return any(MARKS & field.metadata.keys() for _, field, _ in fields)


def _check_names(alteration: Alteration) -> None:
    names = [
        ".".join(path)
        for path, field, _ in walk(alteration.layout.schema)
        if any(letter in field.name for letter in _OF_NO_PARQUET)
    ]
    if names:
        raise InvalidCommand(
            "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
            "Found invalid character(s) among ' ,;{}()\\n\\t=' in the column names of your "
            f"schema. Invalid column names: {', '.join(names)}. Column mapping cannot be removed "
            "when there are invalid characters in the column names",
            hint="rename these columns first",
        )

"""One ALTER TABLE: what the table is, what it becomes, and the commit."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self
from uuid import uuid4

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from tidegate.active import check_none_active
from tidegate.handle import TableHandle
from tidegate.models import DataFile, Receipt
from tidegate.spark.application import table_of
from tidegate.spark.columns.mapping import with_marks
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.refusals import check_readable
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.log.codec import with_fields

_CASE_SENSITIVE = "spark.sql.caseSensitive"
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """A table at the read version of the transaction that is to alter it."""

    spark: SparkSession
    transaction: TransactionHandle
    layout: TableLayout
    user_metadata: str | None = None

    @classmethod
    def begin(
        cls, table: TableHandle, spark: SparkSession, *, user_metadata: str | None = None
    ) -> Self:
        """At the latest version. Raises `TransactionActive`."""
        check_none_active(table.id)
        transaction = TransactionHandle(table_of(table, spark))
        head = transaction.head
        return cls(
            spark=spark,
            transaction=transaction,
            layout=TableLayout.of(name=head.name, location=head.location, metadata=head.metadata),
            user_metadata=user_metadata,
        )

    @property
    def schema(self) -> StructType:
        """The table's columns as they are."""
        return self.layout.spark_schema

    @property
    def metadata(self) -> Metadata:
        """The table's metadata as it is."""
        return self.transaction.head.metadata

    @property
    def protocol(self) -> Protocol:
        """The table's protocol as it is."""
        return self.transaction.head.protocol

    def supports(self, feature: str) -> bool:
        """Whether the table's protocol has the feature."""
        return supports(self.protocol, feature)

    def key(self, name: str) -> str:
        """What names are compared by: as they are, or in any case, as the session has it."""
        sensitive = str(self.spark.conf.get(_CASE_SENSITIVE)).lower() == "true"
        return name if sensitive else name.lower()

    def rows(self) -> DataFrame:
        """All rows, recorded as read: what others add or remove meanwhile is a conflict. Raises
        `UnsupportedTable` for what the client does not read."""
        check_readable(self.layout, self.protocol)
        files = self.transaction.filter_files()
        return rows_of_files(self.spark, self.layout, files, is_whole=True)

    def live_files(self) -> list[DataFile]:
        """The table's files at the read version; nothing is recorded as read."""
        table = self.transaction.table
        return list(table.scan(version=self.transaction.read_version).files)

    def set_columns(self, schema: StructType, changes: Mapping[str, Any] = NOTHING) -> None:
        """Have the table other columns; those that are new get their marks where columns are
        mapped. `changes` are further fields of the metadata, by the log's names."""
        more = dict(changes)
        marked, properties = with_marks(schema, self.layout, new_name=lambda: f"col-{uuid4()}")
        if properties:
            known = changes.get("configuration", self.metadata.configuration)
            more["configuration"] = {**known, **properties}
        self.set_metadata({"schemaString": marked.json(), **more})

    def set_metadata(self, changes: Mapping[str, Any]) -> None:
        """Change fields of the metadata, by the log's names; None takes one away."""
        self.transaction.action(with_fields(self.metadata, changes))

    def set_protocol(self, protocol: Protocol) -> None:
        """Give the table another protocol."""
        self.transaction.action(protocol)

    def commit(
        self,
        operation: str,
        parameters: Mapping[str, Any],
        *,
        tags: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Propose it, under Delta's name and parameters, with Delta's tags."""
        return self.transaction.commit(
            operation,
            parameters=parameters,
            user_metadata=metadata_of(self.user_metadata, self.spark),
            tags=tags,
        )


def shown_path(path: Iterable[str]) -> str:
    """A path of names as Delta's history has it."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def shown_field(path: Iterable[str], field: StructField) -> dict[str, Any]:
    """A column, in the struct at a path, as Delta's history has it."""
    data_type = field.dataType.jsonValue()
    return {
        "name": shown_path([*path, field.name]),
        "type": data_type if isinstance(data_type, str) else field.dataType.typeName(),
        "nullable": field.nullable,
        "metadata": field.metadata,
    }


def as_json(value: object) -> str:
    """JSON without blanks, as Delta's history has it inside of its parameters."""
    return msgspec.json.encode(value).decode()

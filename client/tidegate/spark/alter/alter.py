"""`Table.alter()`: a method for each ALTER TABLE."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TypeVar

from pyspark.sql import SparkSession

from tidegate.handle import TableHandle
from tidegate.models import Receipt
from tidegate.spark.alter import (
    change,
    clustering,
    columns,
    constraints,
    identity,
    properties,
    replace,
)
from tidegate.spark.alter.alteration import Alteration
from tidegate.spark.alter.features import drop, protocol
from tidegate.spark.write.repeats import repeated

T = TypeVar("T")


class Alter:
    """Changes of what a table is, each in one commit, or with a last one, under Delta's names.

    Names of columns are SQL's: ``struct.field``, `` `odd name` ``, and `element`, `key` and `value`
    on the way into lists and maps. What cannot be made sense of raises `InvalidCommand` with
    Delta's error class before any job; a method raises what `Transaction.commit` does, too. After a
    `ConflictError` it is done anew on the newer version, at most `retries` times.
    """

    def __init__(
        self, table: TableHandle, spark: SparkSession, *, user_metadata: str | None, retries: int
    ) -> None:
        self._table = table
        self._spark = spark
        self._user_metadata = user_metadata
        self._retries = retries

    def add_columns(self, definitions: str) -> Receipt:
        """Add columns, and fields of structs, that are null in the rows that there are:
        `"delay INT COMMENT 'minutes' AFTER carrier, place.zone STRING FIRST"`."""
        return self._do(lambda found: columns.add_columns(found, definitions))

    def change_column(
        self,
        name: str,
        *,
        type: str | None = None,
        comment: str | None = None,
        nullable: bool | None = None,
        position: str | None = None,
    ) -> Receipt:
        """Change a column: its type to a wider one (`delta.enableTypeWidening`), its comment,
        whether it may be null, its place (`FIRST`, `AFTER column`)."""
        wanted = change.Change(type=type, comment=comment, nullable=nullable, position=position)
        return self._do(lambda found: change.change_column(found, name, wanted))

    def set_default(self, name: str, expression: str) -> Receipt:
        """Have rows that give a column no value get that of a SQL expression, from now on."""
        return self._do(lambda found: change.set_default(found, name, expression))

    def drop_default(self, name: str) -> Receipt:
        """Have rows that give a column no value get null again."""
        return self._do(lambda found: change.set_default(found, name, None))

    def rename_column(self, name: str, new_name: str) -> Receipt:
        """Call a column otherwise; takes mapped columns (`delta.columnMapping.mode`)."""
        return self._do(lambda found: columns.rename_column(found, name, new_name))

    def drop_columns(self, *names: str) -> Receipt:
        """Drop columns, and fields of structs; takes mapped columns."""
        return self._do(lambda found: columns.drop_columns(found, names))

    def replace_columns(self, definitions: str) -> Receipt:
        """Have the columns be these, each `name type [COMMENT text]`: in another order, with
        further ones, with other comments, and without some where columns are mapped."""
        return self._do(lambda found: replace.replace_columns(found, definitions))

    def add_constraint(self, name: str, expression: str) -> Receipt:
        """Add a CHECK constraint. It has to be true of the rows that there are, which one Spark job
        looks at; who adds or removes rows meanwhile is a conflict."""
        return self._do(lambda found: constraints.add_constraint(found, name, expression))

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> Receipt:
        """Drop a CHECK constraint. With `if_exists`, one that is not there is no error."""
        return self._do(lambda found: constraints.drop_constraint(found, name, if_exists=if_exists))

    def set_properties(self, given: Mapping[str, str]) -> Receipt:
        """Set table properties; `comment` is the table's comment. `delta.enableRowTracking` gives
        all files row ids first, in commits of their own; done again, it goes on from there."""
        return self._do(lambda found: properties.set_properties(found, given, begin=self._begin))

    def unset_properties(self, *names: str, if_exists: bool = False) -> Receipt:
        """Unset table properties. With `if_exists`, one that is not there is no error."""
        return self._do(
            lambda found: properties.unset_properties(found, names, if_exists=if_exists)
        )

    def set_comment(self, comment: str | None) -> Receipt:
        """Give the table another comment, or none."""
        if comment is None:
            return self.unset_properties(properties.COMMENT, if_exists=True)
        return self.set_properties({properties.COMMENT: comment})

    def cluster_by(self, *names: str) -> Receipt | None:
        """Have OPTIMIZE cluster the table by these columns, or without any by none; None for a
        table that is to be clustered by none and never was."""
        return self._do(lambda found: clustering.cluster_by(found, names))

    def sync_identity(self, name: str) -> Receipt:
        """Have an identity column go on after the numbers that its rows have, which one Spark job
        looks at; who adds or removes rows meanwhile is a conflict."""
        return self._do(lambda found: identity.sync_identity(found, name))

    def add_feature(self, name: str) -> Receipt | None:
        """Have the protocol support a table feature, whoever needs it; None where it does."""
        return self._do(lambda found: protocol.add_feature(found, name))

    def upgrade_protocol(self, reader_version: int, writer_version: int) -> Receipt | None:
        """Have the protocol support the features that these versions stand for; None where it
        does."""
        return self._do(
            lambda found: protocol.upgrade_protocol(found, reader_version, writer_version)
        )

    def drop_feature(self, name: str, *, truncate_history: bool = False) -> Receipt:
        """Take a table feature, and what needs it, from the table: commits before the one that is
        returned write files again for it, or take their row ids away. The history is not truncated:
        `truncate_history` is for `checkpointProtection`, once it is gone."""
        return repeated(
            lambda: drop.drop_feature(self._begin, name, truncate_history=truncate_history),
            retries=self._retries,
            clock_s=monotonic,
        )

    def _begin(self) -> Alteration:
        return Alteration.begin(self._table, self._spark, user_metadata=self._user_metadata)

    def _do(self, work: Callable[[Alteration], T]) -> T:
        return repeated(lambda: work(self._begin()), retries=self._retries, clock_s=monotonic)

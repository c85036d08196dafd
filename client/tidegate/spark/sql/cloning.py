"""CREATE TABLE and REPLACE TABLE, of which a CLONE is one form."""

from pyspark.sql import DataFrame

from tidegate.spark.clone.clone import CloneKind, Target, clone
from tidegate.spark.clone.parquet import parquet_source
from tidegate.spark.clone.source import CloneSource, source_of
from tidegate.spark.commands.making import Making
from tidegate.spark.delta import descriptions
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.sql.altering import properties
from tidegate.spark.sql.creating import make
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement
from tidegate.spark.storage.locations import place_url
from tidegate.table import Table

_PARQUET = "parquet"


def create(statement: Statement, session: Session) -> DataFrame:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table ...: a clone, or columns."""
    replaces = statement.takes("OR", "REPLACE")
    return _made(statement, session, Making.CREATE_OR_REPLACE if replaces else Making.CREATE)


def replace(statement: Statement, session: Session) -> DataFrame:
    """REPLACE TABLE table ...: a clone, or columns."""
    return _made(statement, session, Making.REPLACE)


def _made(statement: Statement, session: Session, making: Making) -> DataFrame:
    name = None
    if statement.takes("TABLE"):
        if making is Making.CREATE and statement.takes("IF", "NOT", "EXISTS"):
            making = Making.CREATE_IF_NOT_EXISTS
        name = statement.maybe_name()
    kind = next((each for each in CloneKind if statement.takes(each.value, "CLONE")), None)
    if name is None or kind is None:
        if statement.sees("CLONE"):
            raise statement.refusal("SHALLOW CLONE or DEEP CLONE")
        return make(statement, session)
    return _clone(statement, session, ".".join(name), kind, making)


def _clone(
    statement: Statement, session: Session, name: str, kind: CloneKind, making: Making
) -> DataFrame:
    """table SHALLOW CLONE table [VERSION AS OF n | TIMESTAMP AS OF text] [TBLPROPERTIES (key =
    value, ...)] [LOCATION text], and the same with DEEP"""
    source_name = statement.name()
    version = timestamp = None
    if statement.takes("VERSION", "AS", "OF"):
        version = statement.integer()
    elif statement.takes("TIMESTAMP", "AS", "OF"):
        timestamp = statement.string()
    given = properties(statement) if statement.takes("TBLPROPERTIES") else {}
    location = statement.string() if statement.takes("LOCATION") else None
    statement.end()
    if len(source_name) == 2 and source_name[0].lower() == _PARQUET:
        if version is not None or timestamp is not None:
            raise InvalidCommand(
                "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
                f"expected no version of a folder of Parquet files, found one of {source_name[1]}",
            )

        def source() -> CloneSource:
            return parquet_source(place_url(source_name[1]), session.spark)

    else:
        table = session.table(source_name)

        def source() -> CloneSource:
            return source_of(table, session.spark, version=version, timestamp=timestamp)

    target = Target(name=name, kind=kind, making=making, properties=given, location=location)
    found = clone(
        session.lake.connection,
        session.spark,
        source,
        target,
        handle=Table,
        user_metadata=session.user_metadata,
        retries=session.retries,
    )
    return descriptions.cloned(found, session.spark)

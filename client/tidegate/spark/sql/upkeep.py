"""Statements that rearrange a table, or restore it: OPTIMIZE, REORG, RESTORE, VACUUM, GENERATE."""

from datetime import timedelta

from pyspark.sql import DataFrame

from tidegate.spark.commands.restore import restore
from tidegate.spark.delta import descriptions
from tidegate.spark.delta.delta_table import DeltaTable
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.optimize.optimize import optimize, reorg
from tidegate.spark.sql.session import Session
from tidegate.spark.sql.statement import Statement


def optimize_table(statement: Statement, session: Session) -> DataFrame:
    """OPTIMIZE table [FULL] [WHERE predicate] [ZORDER BY (column, ...)]"""
    table = session.table(statement.name())
    is_full = statement.takes("FULL")
    where = _partitions(statement, "ZORDER")
    columns: list[str] = []
    if statement.takes("ZORDER"):
        statement.expect("BY")
        columns = statement.columns()
    statement.end()
    found = optimize(
        table,
        session.spark,
        where=where,
        z_order_by=columns,
        is_full=is_full,
        user_metadata=session.user_metadata,
    )
    return found.frame(session.spark)


def reorg_table(statement: Statement, session: Session) -> DataFrame:
    """REORG TABLE table [WHERE predicate] APPLY (PURGE)"""
    statement.expect("TABLE")
    table = session.table(statement.name())
    where = _partitions(statement, "APPLY")
    statement.expect("APPLY")
    statement.in_parentheses(lambda: statement.expect("PURGE"))
    statement.end()
    found = reorg(table, session.spark, where=where, user_metadata=session.user_metadata)
    return found.frame(session.spark)


def restore_table(statement: Statement, session: Session) -> DataFrame:
    """RESTORE [TABLE] table [TO] VERSION AS OF n, or TIMESTAMP AS OF text"""
    statement.takes("TABLE")
    table = session.table(statement.name())
    statement.takes("TO")
    version = timestamp = None
    if statement.takes("VERSION", "AS", "OF"):
        version = statement.integer()
    else:
        statement.expect("TIMESTAMP", "AS", "OF")
        timestamp = statement.string()
    statement.end()
    found = restore(
        table,
        session.spark,
        version=version,
        timestamp=timestamp,
        user_metadata=session.user_metadata,
        retries=session.retries,
    )
    return descriptions.restored(found, session.spark)


def vacuum(statement: Statement, session: Session) -> DataFrame:
    """VACUUM table [RETAIN n HOURS] [DRY RUN]: a row for the table, or for each file that would be
    deleted."""
    table = session.table(statement.name())
    retain = None
    if statement.takes("RETAIN"):
        retain = _hours(statement.number())
        statement.expect("HOURS")
    dry_run = statement.takes("DRY", "RUN")
    statement.end()
    found = table.vacuum(retain=retain, dry_run=dry_run)
    root = table.location.rstrip("/")
    paths = [f"{root}/{path}" for path in found.paths] if dry_run else [root]
    return session.spark.createDataFrame([(path,) for path in paths], "path STRING")


def generate(statement: Statement, session: Session) -> DataFrame:
    """GENERATE symlink_format_manifest FOR TABLE table"""
    mode = statement.identifier()
    statement.expect("FOR", "TABLE")
    table = session.table(statement.name())
    statement.end()
    DeltaTable.over(session.spark, table).generate(mode)
    return session.nothing()


def _hours(count: float) -> timedelta:
    try:
        return timedelta(hours=count)
    except OverflowError:
        raise InvalidCommand(
            "PARSE_SYNTAX_ERROR",
            f"expected no more than {timedelta.max.days} days to retain, found {count:g} hours",
        ) from None


def _partitions(statement: Statement, stop: str) -> list[str]:
    # In parentheses, behind which Spark takes no name.
    return [f"({statement.until(stop)})"] if statement.takes("WHERE") else []

"""Queries over tables of the service: temporary views have their rows for one statement."""

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from tidegate.spark.alter.definitions import expression_of, plan_of
from tidegate.spark.delta.finding import found_named
from tidegate.spark.expressions.errors import InvalidCommand, of_spark, words_of
from tidegate.spark.sql.session import BY_PATH, Session, in_backticks
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.table import Table

QUERY_WORDS = ("SELECT", "VALUES", "WITH", "TABLE", "FROM")
"""The first words of queries, which may be in parentheses."""
_CHANGE_ROWS = {"DeleteFromTable", "UpdateTable", "MergeIntoTable"}
"""Plans whose first child is the table that they change."""
_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
"""What Spark says of names that it does not know; its own catalog has none of three parts."""
_VARIABLE = "${"
_TABLE_STATEMENT = re.compile(r"\bTABLE[\s(]*\Z", re.IGNORECASE)
_SAMPLE = re.compile(r"\s*TABLESAMPLE\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relation:
    """A table in a query. From `start` to `end` the text has its name, and behind that what time
    travel there is. `refused` is what the text has beside, and no table of the service takes."""

    name: tuple[str, ...]
    start: int
    end: int
    version: str | None = None
    timestamp: str | None = None
    has_alias: bool = False
    refused: str | None = None


def query_of(text: str, session: Session) -> DataFrame:
    """The rows of a query. Raises `InvalidCommand`, for each other statement, too: Spark runs a
    command as soon as it is given one."""
    plan_of(session.spark, text)
    try:
        expression_of(session.spark, f"EXISTS ({text}\n)")
    except InvalidCommand:
        raise InvalidCommand(
            "PARSE_SYNTAX_ERROR", f"expected a query, found another statement: {text}"
        ) from None
    try:
        return session.spark.sql(text)
    except AnalysisException as error:
        if error.getCondition() in _UNKNOWN:
            raise InvalidCommand(
                "TABLE_OR_VIEW_NOT_FOUND",
                f"neither the session nor the service has a table that is read: {words_of(error)}",
            ) from error
        raise of_spark(error) from error


@contextmanager
def with_views(text: str, session: Session) -> Iterator[str]:
    """The statement with the name of a view in the place of each table of the service that it
    reads; at the end of the block the views are dropped. All that a statement reads of a table is
    of one version, unless it names another.

    Such tables have names of three parts, or places, ``delta.`place` ``; three parts that the
    service does not know are Spark's. Raises `InvalidCommand`."""
    relations = {each.start: each for each in _relations(plan_of(session.spark, text), text)}
    views: dict[tuple[str, str | None, str | None], str] = {}
    try:
        for start in sorted(relations, reverse=True):
            relation = relations[start]
            table = _table(relation.name, session)
            if table is None:
                continue
            # Spark replaces variables first, and counts the places in the text behind that.
            if (found := _VARIABLE if _VARIABLE in text else relation.refused) is not None:
                raise InvalidCommand(
                    "DELTA_OPERATION_NOT_ALLOWED",
                    f"expected table {table.name} in a query without {found}",
                    hint="VERSION AS OF and TIMESTAMP AS OF are for versions, "
                    'spark.readStream.format("tidegate") is for streams',
                )
            key = (table.id, relation.version, relation.timestamp)
            if key not in views:
                rows = _rows(table, relation, session)
                view = f"tidegate_{uuid.uuid4().hex}"
                rows.createTempView(view)
                views[key] = view
            text = _replaced(text, relation, views[key])
        yield text
    finally:
        # The session's catalog.dropTempView would empty the cache of the same rows, too.
        catalog = session.spark._jsparkSession.sessionState().catalog()
        for view in views.values():
            catalog.dropTempView(view)


def _relations(plan: JavaObject, text: str, *, has_alias: bool = False) -> Iterator[_Relation]:
    """The tables that a plan reads, subqueries and CTEs included."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "UnresolvedRelation":
        start, end = _span(plan)
        name = tuple(_strings(plan.multipartIdentifier()))
        refused = None if plan.options().isEmpty() else "options"
        refused = "STREAM" if plan.isStreaming() else refused
        yield _Relation(name=name, start=start, end=end, has_alias=has_alias, refused=refused)
        return
    if kind == "RelationTimeTravel":
        (named,) = _relations(plan.relation(), text)
        version, timestamp = plan.version(), plan.timestamp()
        start, end = _span(plan)
        yield _Relation(
            name=named.name,
            start=named.start,
            end=end,
            version=str(version.get()) if version.isDefined() else None,
            timestamp=text[slice(*_span(timestamp.get()))] if timestamp.isDefined() else None,
            has_alias=has_alias,
            refused="@" if start == named.start else named.refused,
        )
        return
    children = list(_items(plan.children()))[1 if kind in _CHANGE_ROWS else 0 :]
    for child in [*children, *_items(plan.innerChildren())]:
        is_named = kind == "SubqueryAlias" or (
            has_alias and kind == "UnresolvedSubqueryColumnAliases"
        )
        yield from _relations(child, text, has_alias=is_named)


def _span(node: JavaObject) -> tuple[int, int]:
    """Where a node of a plan begins in its text, and ends."""
    origin = node.origin()
    return int(origin.startIndex().get()), int(origin.stopIndex().get()) + 1


def _table(name: Sequence[str], session: Session) -> Table | None:
    """The table of the service with this name; None for one of Spark's."""
    if len(name) == 2 and name[0].lower() == BY_PATH and "/" in name[1]:
        return session.table(name)
    if len(name) != 3:
        return None
    return found_named(session.lake, ".".join(name))


def _rows(table: Table, relation: _Relation, session: Session) -> DataFrame:
    if relation.version is not None:
        if not relation.version.isdecimal():
            raise InvalidCommand(
                "PARSE_SYNTAX_ERROR", f"expected a version's number, found {relation.version}"
            )
        return table.read(session.spark, version=int(relation.version))
    if relation.timestamp is not None:
        return table.read(session.spark, timestamp=_instant(relation.timestamp, session))
    return table.read(session.spark)


def _instant(text: str, session: Session) -> int:
    """Milliseconds since the epoch."""
    try:
        found = session.spark.sql(f"SELECT unix_millis(try_cast(({text}\n) AS TIMESTAMP))").first()
    except AnalysisException as error:
        raise of_spark(error) from error
    if found is None or found[0] is None:
        raise InvalidCommand(
            "DELTA_TIMESTAMP_INVALID",
            f"The provided timestamp ({text}) cannot be converted to a valid timestamp",
        )
    return int(found[0])


def _replaced(text: str, relation: _Relation, view: str) -> str:
    before, after = text[: relation.start], text[relation.end :]
    # Behind these SQL has no alias.
    is_bare = _TABLE_STATEMENT.search(before) or _SAMPLE.match(after)
    if not relation.has_alias and not is_bare:
        view += f" AS {in_backticks(relation.name[-1:])}"
    return before + view + after


def _items(sequence: JavaObject) -> Iterator[JavaObject]:
    for i in range(sequence.size()):
        yield sequence.apply(i)


def _strings(sequence: JavaObject) -> list[str]:
    return [str(each) for each in _items(sequence)]

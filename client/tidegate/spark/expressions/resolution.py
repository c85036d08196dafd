"""Expressions of a command, resolved over the columns that each of them may name.

Spark's analyzer does it, on plans that never run. What comes back refers to the columns of the very
DataFrame that it was resolved over, and so means the same wherever those columns are joined.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType

from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.expressions.errors import InvalidCommand, of_spark
from tidegate.spark.expressions.instant import Instant, contains, is_current, with_words
from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of

_SHOWN = 300
_RECORDED = 8_000
_OF_USERS = ("PYTHON_UDF", "SCALA_UDF", "SQL_SCALAR_FUNCTION")
"""Patterns of Catalyst's trees."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resolved:
    """An expression with its type. `java` is Catalyst's."""

    column: Column
    data_type: DataType
    java: JavaObject

    @property
    def sql(self) -> str:
        """Its text, in which columns bear the alias of their side."""
        return str(self.java.sql())

    @property
    def is_deterministic(self) -> bool:
        """Whether the same row gives the same each time, by what its functions say."""
        return bool(self.java.deterministic())

    @property
    def recorded(self) -> str:
        """The text for the history."""
        return recorded(self.sql)

    @property
    def shown(self) -> str:
        """The text for messages."""
        return self.sql if len(self.sql) <= _SHOWN else f"{self.sql[:_SHOWN]}..."


class Scope:
    """The columns that an expression may name: those of a DataFrame, by its aliases. `instant` is
    the time that a current one is; without it, each job has its own."""

    def __init__(self, frame: DataFrame, instant: Instant | None) -> None:
        if not hasattr(frame, "_jdf"):
            raise UnsupportedSession(
                "commands need a session with Spark's own driver, found one of Spark Connect"
            )
        self.frame = frame
        self._instant = instant
        self._jvm = jvm_of(frame.sparkSession)
        self._plan = frame._jdf.queryExecution().analyzed()
        self._output = self._plan.outputSet()

    @property
    def columns(self) -> list[str]:
        """The columns as SQL has them, for messages."""
        output = self._plan.output()
        return [str(output.apply(i).sql()) for i in range(output.size())]

    def named(self, names: Collection[str] | None = None) -> dict[str, Resolved]:
        """The columns by name, or those of these names. A name that two bear in any case stands for
        neither."""
        fields = self.frame.schema.fields
        often = Counter(field.name.lower() for field in fields)
        output = self._plan.output()
        make = column_maker(self._jvm)
        found = {}
        for i, field in enumerate(fields):
            if often[field.name.lower()] == 1 and (names is None or field.name in names):
                java = output.apply(i)
                found[field.name] = Resolved(column=make(java), data_type=field.dataType, java=java)
        return found

    def resolve(self, columns: Sequence[Column]) -> list[Resolved]:
        """The values. Raises `InvalidCommand` for an aggregate, a window or a subquery, and what
        Spark raises for names and types."""
        if not columns:
            return []
        named = [column.alias(f"__tidegate_{i}") for i, column in enumerate(columns)]
        selected = self.frame.select(*named)
        plan = selected._jdf.queryExecution().analyzed()
        types = [field.dataType for field in selected.schema.fields]
        if plan.getClass().getSimpleName() != "Project":
            raise _not_of_a_row(str(columns[0]))
        spark = self.frame.sparkSession
        if self._instant is not None:
            plan = with_words(spark, plan)
        has_time = is_current(spark, plan)
        values = plan.projectList()
        make = column_maker(self._jvm)
        found = []
        for i, data_type in enumerate(types):
            java = values.apply(i).child()
            if has_time and self._instant is not None:
                java = self._instant.fixed(java)
            found.append(Resolved(column=make(java), data_type=data_type, java=java))
        if not plan.references().subsetOf(self._output):
            foreign = (each for each in found if not self.covers(each.java))
            raise _not_of_a_row(next(foreign, found[0]).shown)
        if contains(spark, plan, "PLAN_EXPRESSION"):
            for each in found:
                if has_subquery(spark, each.java):
                    raise InvalidCommand(
                        "DELTA_UNSUPPORTED_SUBQUERY",
                        f"Subqueries are not supported in a value ({each.shown})",
                    )
        return found

    def condition(self, column: Column) -> Resolved:
        """The condition, in which subqueries may be. Raises what Spark raises, also for one that is
        no boolean, and `InvalidCommand` for a function that is written in SQL."""
        plan = self.frame.where(column)._jdf.queryExecution().analyzed()
        if plan.getClass().getSimpleName() != "Filter":
            raise InvalidCommand(
                "UNSUPPORTED_EXPR_FOR_OPERATOR",
                f"User-defined SQL functions are not supported in a condition ({column})",
                hint="write the function's expression instead",
            )
        if self._instant is not None:
            plan = with_words(self.frame.sparkSession, plan)
        java = plan.condition()
        java = java if self._instant is None else self._instant.fixed(java)
        return Resolved(column=column_of(self._jvm, java), data_type=BooleanType(), java=java)

    def covers(self, expression: JavaObject) -> bool:
        """Whether the expression names columns of this side alone."""
        return bool(expression.references().subsetOf(self._output))


def row_condition(scope: Scope, column: Column, *, operation: str) -> Resolved:
    """The condition of a DELETE or UPDATE. Raises `InvalidCommand` for what is no condition over
    single rows, and for a subquery other than EXISTS."""
    try:
        found = scope.condition(column)
    except AnalysisException as error:
        if (error.getCondition() or "").startswith("WINDOW_FUNCTION"):
            raise _not_of_a_row(str(column)) from error
        raise of_spark(error) from error
    except ParseException as error:
        raise of_spark(error) from error
    if not found.is_deterministic:
        raise InvalidCommand(
            "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
            f"The {operation} expects a deterministic expression, but the actual expression is "
            f"{found.shown}",
        )
    return found


def conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    """The parts that an expression joins by AND; a BETWEEN is two of them."""
    left = [expression]
    while left:
        found = left.pop()
        match found.getClass().getSimpleName():
            case "And":
                left += [found.right(), found.left()]
            case "Between":
                left.append(found.replacement())
            case _:
                yield found


def names_of(expression: JavaObject) -> list[str]:
    """The columns that an expression names."""
    found = expression.references().toSeq()
    return [str(found.apply(i).name()) for i in range(found.size())]


def recorded(sql: str) -> str:
    """A predicate's text as the history has it, where a commit has 64 KiB for what its operation
    says of itself."""
    if len(sql) <= _RECORDED:
        return sql
    return f"{sql[:_RECORDED]}... ({len(sql)} characters)"


def column_of(jvm: JavaObject, expression: JavaObject) -> Column:
    """A resolved expression as PySpark's column."""
    return column_maker(jvm)(expression)


def column_maker(jvm: JavaObject) -> Callable[[JavaObject], Column]:
    """What makes PySpark's columns of resolved expressions, each in one call of the JVM."""
    from pyspark.sql.classic.column import Column as ClassicColumn  # noqa: PLC0415 - not in Connect

    make = java_class(jvm, "org.apache.spark.sql.classic.ExpressionUtils").column
    return lambda expression: ClassicColumn(make(expression))


def has_subquery(spark: SparkSession, expression: JavaObject) -> bool:
    """Whether there is a subquery inside."""
    name = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
    return bool(java_class(jvm_of(spark), name).hasSubquery(expression))


def has_user_function(spark: SparkSession, expression: JavaObject) -> bool:
    """Whether there is a function of a user's inside, which may have the name of one of Spark's."""
    return any(contains(spark, expression, name) for name in _OF_USERS)


def has_only_exists(spark: SparkSession, expression: JavaObject) -> bool:
    """Whether each subquery inside is an EXISTS that stands as a condition of its own, or below
    NOT, AND and OR."""
    if not has_subquery(spark, expression):
        return True
    if expression.getClass().getSimpleName() == "Exists":
        return True
    if expression.getClass().getSimpleName() not in ("And", "Or", "Not"):
        return False
    children = expression.children()
    return all(has_only_exists(spark, children.apply(i)) for i in range(children.size()))


def _not_of_a_row(sql: str) -> InvalidCommand:
    return InvalidCommand(
        "UNSUPPORTED_EXPR_FOR_OPERATOR",
        "A query operator contains one or more unsupported expressions: aggregates, windows and "
        f"generators are none of a single row. Invalid expressions: [{sql}]",
    )

"""The current time of a command: the same in each of its Spark jobs, as in Delta, where a command
is one plan of Spark's."""

import re
from collections.abc import Mapping

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of

_CATALYST = "org.apache.spark.sql.catalyst"
_OPTIMIZER = f"{_CATALYST}.optimizer"
_TIME_OF_DAY = re.compile(r"'\s*(?:T\d|\d{1,2}:)")
_FUNCTIONS = ("current_timestamp", "now", "current_date", "localtimestamp", "current_timezone")
_OTHERS = ("Current", "Local")
"""What the classes of further functions of the current time begin with, such as `current_time(3)`,
and those of `current_user()` and `current_database()`, which Spark answers by itself."""


class Instant:
    """One instant, at which a command's expressions are evaluated: the first time that one of them
    asks for the current time."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._literals: dict[str, JavaObject | None] = {}

    def fixed(self, expression: JavaObject) -> JavaObject:
        """Catalyst's expression with literals in the place of current times. Raises
        `InvalidCommand` where an EXISTS asks for one."""
        if contains(self._spark, expression, "EXISTS_SUBQUERY"):
            self._check_exists(expression)
        return self._fixed(expression)

    def _fixed(self, expression: JavaObject) -> JavaObject:
        if not is_current(self._spark, expression):
            return expression
        if (literal := self._literal(expression)) is not None:
            return literal
        children = expression.children()
        inside = [self._fixed(children.apply(i)) for i in range(children.size())]
        return expression.withNewChildren(jvm_of(self._spark).PythonUtils.toSeq(inside))

    def _literal(self, expression: JavaObject) -> JavaObject | None:
        sql = str(expression.sql())
        if not self._literals:
            self._ask({f"{name}()": F.call_function(name) for name in _FUNCTIONS})
        is_other = expression.getClass().getSimpleName().startswith(_OTHERS)
        if is_other and sql not in self._literals:
            self._ask({sql: F.expr(sql)})
        return self._literals.get(sql)

    def _ask(self, functions: Mapping[str, Column]) -> None:
        plan = self._spark.range(1).select(*functions.values())._jdf.queryExecution().analyzed()
        values = self._with_time(plan).projectList()
        for i, sql in enumerate(functions):
            found = values.apply(i).child()
            is_literal = found.getClass().getSimpleName() == "Literal"
            self._literals[sql] = found if is_literal else None

    def _check_exists(self, expression: JavaObject) -> None:
        if expression.getClass().getSimpleName() != "Exists":
            children = expression.children()
            for child in (children.apply(i) for i in range(children.size())):
                if contains(self._spark, child, "EXISTS_SUBQUERY"):
                    self._check_exists(child)
            return
        plan = expression.plan()
        if not with_words(self._spark, self._with_time(plan)).fastEquals(plan):
            raise InvalidCommand(
                "DELTA_UNSUPPORTED_SUBQUERY",
                "Subqueries with the current time are not supported",
                hint="give the time as a literal",
            )

    def _with_time(self, plan: JavaObject) -> JavaObject:
        name = f"{_OPTIMIZER}.ComputeCurrentTime"
        return java_class(jvm_of(self._spark), name).apply(plan)


def with_words(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """The plan with literals in the place of words for times, such as `'today'`, and of times of a
    condition without a day, such as `'06:00'`, that are cast to times: Spark reads both on the day
    of the job."""
    jvm = jvm_of(spark)
    replaced = java_class(jvm, f"{_OPTIMIZER}.ReplaceExpressions").apply(plan)
    found = java_class(jvm, f"{_OPTIMIZER}.SpecialDatetimeValues").apply(replaced)
    if plan.getClass().getSimpleName() == "Filter" and _has_time_of_day(spark, plan.condition()):
        found = java_class(jvm, f"{_OPTIMIZER}.ConstantFolding").apply(found)
    return plan if found.fastEquals(replaced) else found


def _has_time_of_day(spark: SparkSession, condition: JavaObject) -> bool:
    if not contains(spark, condition, "CAST"):
        return False
    return _TIME_OF_DAY.search(str(condition.sql())) is not None


def is_current(spark: SparkSession, tree: JavaObject) -> bool:
    """Whether an expression or plan holds a function of the current time, user or namespace."""
    return contains(spark, tree, "CURRENT_LIKE")


def contains(spark: SparkSession, tree: JavaObject, pattern: str) -> bool:
    """Whether a node of this pattern of Catalyst's is in an expression or plan."""
    patterns = java_class(jvm_of(spark), f"{_CATALYST}.trees.TreePattern")
    return bool(tree.containsPattern(patterns.withName(pattern)))

"""What commands ask of Spark's JVM does not grow by much with the number of a table's columns."""

import re
from collections.abc import Callable

import pytest
from py4j.clientserver import JavaClient
from pyspark.errors import utils

from tests.spark.tables import rows

FEW, MANY = 10, 60
MOST = {"append": 1, "merge": 25, "update": 8, "delete": 1, "read": 1}
"""Calls for each column that there is more. A column that is made by itself is five, and thirteen
with its line noted."""
_FORGOTTEN = re.compile(r"m\nd\n")


@pytest.fixture
def calls(spark, monkeypatch) -> Callable[[Callable[[], object]], int]:
    """How many calls a function makes in a session as users have one: PySpark notes lines, and
    knows no class yet."""
    monkeypatch.setattr(utils, "_enable_debugging_cache", True)
    for name in ("PythonUtils", "functions"):
        monkeypatch.delitem(vars(spark._jvm), name, raising=False)
    sent: list[str] = []
    send = JavaClient.send_command

    def counted(client, command, *arguments, **others):
        # Objects are let go whenever Python collects them.
        if not _FORGOTTEN.match(command):
            sent.append(command)
        return send(client, command, *arguments, **others)

    monkeypatch.setattr(JavaClient, "send_command", counted)

    def count(work):
        before = len(sent)
        work()
        return len(sent) - before

    return count


def commands(spark, create, width):
    """The commands on a table of so many columns, and the table."""
    names = [f"c{number}" for number in range(width)]
    table = create(f"id BIGINT, {', '.join(f'{name} INT' for name in names)}")
    df = spark.range(3).selectExpr("id", *(f"CAST(id AS INT) AS {name}" for name in names))
    df.schema, df.columns  # noqa: B018 - PySpark asks for them once
    merging = table.merge(df.where("id > 1").alias("s"), "t.id = s.id + 1", alias="t")
    return table, {
        "append": lambda: table.append(df),
        "merge": merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute,
        "update": lambda: table.update({"c1": "c1 + 7"}, "id = 0", spark=spark),
        "delete": lambda: table.delete("id = 1", spark=spark),
        "read": lambda: table.read(spark),
    }


def test_a_column_more_is_a_few_calls_more(spark, create, calls):
    found = {}
    for width in (FEW, MANY):
        table, of_table = commands(spark, create, width)
        found[width] = {name: calls(command) for name, command in of_table.items()}
        values = rows(table.read(spark).select("id", "c1", f"c{width - 1}"))
        assert values == [(0, 7, 0), (2, 2, 2), (2, 2, 2)]
    more = {name: (found[MANY][name] - found[FEW][name]) / (MANY - FEW) for name in MOST}
    assert {name: many for name, many in more.items() if many > MOST[name]} == {}
    # Whoever made columns of their own has their lines noted still.
    assert utils._enable_debugging_cache is True

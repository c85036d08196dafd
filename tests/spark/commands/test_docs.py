"""docs/commands.md is true: its Python runs, block after block, against a real service."""

import re

from tests.repository import ROOT
from tests.spark.tables import rows
from tidegate.lake import TOKEN_VARIABLE, URL_VARIABLE

_PAGE = (ROOT / "docs" / "commands.md").read_text()


def test_the_pages_snippets_run(session, lake, monkeypatch):
    monkeypatch.setenv(URL_VARIABLE, lake.url)
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    first = session.sql(
        "SELECT * FROM VALUES (1, 1, 'ua', 5), (2, 2, 'AA', 9) AS f(id, month, carrier, delay)"
    )
    flights = lake.create_table("main.air.flights", schema=first.schema, partition_by="month")
    flights.append(first)
    blocks = re.findall(r"^```python\n(.*?)^```", _PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    names = {"spark": session}
    for block in blocks:
        exec(compile(block, "docs/commands.md", "exec"), names)
    assert names["changed"].deleted == 1
    found = flights.history(limit=11)
    assert [commit.operation for commit in found] == [
        *("OPTIMIZE", "OPTIMIZE", "OPTIMIZE"),
        *("WRITE", "MERGE", "MERGE", "UPDATE", "DELETE"),
        *("MERGE", "UPDATE", "WRITE"),
    ]
    assert rows(flights.read(session)) == [(3, 2, "AA", 4), (4, 2, "DL", 9)]

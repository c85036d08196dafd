"""Commits to a table that its instance knows at the version before: nothing looks at it first."""

from tests.service.unity_catalog.stock import metadata
from tests.service.unity_catalog.test_stock_commits import after, own_line


def test_what_another_one_took_is_taken(stock, table):
    table.commit(1)
    table.load()
    body = {"operation": "WRITE", "actions": [own_line()]}
    assert stock.own.post(f"/tables/main.air.{table.name}/commits", json=body).is_success
    assert table.propose(table.stage(2)).status_code == 409
    assert table.load()["latest-table-version"] == 2


def test_another_table_of_its_name_is_another_one(stock, table):
    table.commit(1)
    assert stock.own.delete(f"/tables/main.air.{table.name}").status_code == 204
    assert table.propose(table.stage(2)).status_code == 404
    other = stock.create(table.name)
    other.commit(1)
    assert table.propose(table.stage(2)).status_code == 409, "it has another id"
    other.commit(2)


def test_metadata_that_another_one_changed_is_what_counts(stock, table):
    table.load()
    changed = metadata(table.table_id, k="v")
    body = {"operation": "SET TBLPROPERTIES", "read_version": 0, "actions": [changed]}
    landed = stock.own.post(f"/tables/main.air.{table.name}/commits", json=body)
    assert landed.is_success, landed.text
    assert table.propose(table.stage(1)).status_code == 409
    table.load()
    answer = table.propose(table.stage(2, **after(landed.json()["timestamp"])))
    assert answer.json()["metadata"]["properties"]["k"] == "v"

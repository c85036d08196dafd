"""Forgotten tables over HTTP, and `tidegate table forgotten`, `delete-forgotten`, `register`."""

import json

import pytest

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.catalog_managed.guarded import rows
from tests.service.process.cli.command_line import invoke


@pytest.fixture
def table(server):
    def run(*arguments: object, exit_code: int = 0) -> str:
        done = invoke("table", *arguments, "--url", server)
        assert done.exit_code == exit_code, done.stderr
        return done.stdout if exit_code == 0 else done.stderr

    return run


@pytest.fixture
def forgotten(api):
    """A catalog-managed table with one commit, which was forgotten; its head, and the commit."""
    head = api.post("/tables", json=table_body(catalog_managed=True)).json()
    body = proposal(add(), transaction_id="once")
    api.post(f"/tables/{TABLE}/commits", json=body)
    assert api.delete(f"/tables/{TABLE}").status_code == 204
    return head, body


def test_it_is_listed_and_registered_again(api, table, forgotten):
    head, body = forgotten
    kept = api.get("/forgotten-tables").json()
    found = {name: kept["tables"][0][name] for name in ("id", "name", "location")}
    assert found == {name: head[name] for name in ("id", "name", "location")}
    assert (kept["tables"][0]["catalog_managed"], kept["next_cursor"]) == (True, None)
    assert json.loads(table("forgotten", "--json")) == kept["tables"]
    assert head["id"] in table("forgotten")

    plain = api.post("/tables/register", json={"name": TABLE, "location": head["location"]})
    assert (plain.status_code, plain.json()["code"]) == (422, "unsupported-feature")
    assert "catalog_managed" in plain.json()["hint"]
    table("register", TABLE, head["location"], "--catalog-managed")

    again = api.post(f"/tables/{TABLE}/commits", json=body)
    assert (again.status_code, again.json()["version"], again.json()["replayed"]) == (200, 1, True)
    assert api.get("/forgotten-tables").json()["tables"] == []


def test_it_is_deleted_for_good_by_who_says_so(api, table, forgotten, database_url):
    head, _ = forgotten
    assert "cannot be undone" in table("delete-forgotten", head["id"], exit_code=1)
    assert len(api.get("/forgotten-tables").json()["tables"]) == 1

    assert "nothing is kept" in table("delete-forgotten", head["id"], "--yes")

    assert api.get("/forgotten-tables").json()["tables"] == []
    gone = api.delete(f"/forgotten-tables/{head['id']}")
    assert (gone.status_code, gone.json()["code"]) == (404, "table-not-found")
    asked = {"name": TABLE, "location": head["location"], "catalog_managed": True}
    assert api.post("/tables/register", json=asked).json()["code"] == "unsupported-feature"
    deeds = rows(database_url, "SELECT deed, table_name, table_id::text FROM audit ORDER BY id")
    assert deeds[-1] == ("delete-forgotten", TABLE, head["id"])


def test_pages(api):
    ids = []
    for number in range(3):
        head = api.post("/tables", json=table_body(f"main.air.t{number}")).json()
        api.delete(f"/tables/{head['id']}")
        ids.append(head["id"])
    first = api.get("/forgotten-tables", params={"limit": 2}).json()
    rest = api.get("/forgotten-tables", params={"cursor": first["next_cursor"]}).json()
    assert [one["id"] for one in first["tables"] + rest["tables"]] == sorted(ids)


def test_a_place_with_a_log_is_registered(api):
    head = api.post("/tables", json=table_body()).json()
    api.delete(f"/tables/{TABLE}")
    answer = api.post("/tables", json=table_body())
    assert (answer.status_code, answer.json()["code"]) == (409, "table-exists")
    assert "/tables/register" in answer.json()["hint"]
    asked = {"name": TABLE, "location": head["location"]}
    assert api.post("/tables/register", json=asked).status_code == 201

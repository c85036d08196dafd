"""A vacuum where others may have tables that no index here knows: in a place that is no scope's, or
another one's."""

import json
import os
import time

import obstore
import pytest
from obstore.store import S3Store

from tests.builders.flights import SCHEMA, add, proposal
from tests.service.catalog_managed.guarded import Guarded

OLD_S = 30 * 24 * 3600
AT_ONCE = {"retain_ms": 0, "allow_shorter": True}
TABLE = "main.mine.t"


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def guarded(start_service, database_url, lake):
    service = start_service(auth="tokens", allowed_locations=[lake.as_uri()])
    return Guarded(service.url, database_url)


@pytest.fixture
def theirs(guarded, lake):
    """A file of a table below one that somebody else has created around it."""
    file = lake / "team" / "theirs" / "part"
    (file.parent / "_delta_log").mkdir(parents=True)
    for path in (file, file.parent / "_delta_log" / f"{0:020d}.json"):
        path.write_bytes(b"{}")
        at = time.time() - OLD_S
        os.utime(path, (at, at))
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        created = client.post(
            "/tables",
            json={
                "name": TABLE,
                "schema": SCHEMA,
                "partition_columns": ["month"],
                "location": f"{lake.as_uri()}/team",
            },
        )
        assert created.status_code == 201, created.text
        client.post(f"/tables/{TABLE}/commits", json=proposal(add("live"))).raise_for_status()
    return file


def last(answer):
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text.splitlines()[-1])


def test_it_deletes_nothing_where_another_log_lies_below(guarded, theirs):
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        answer = client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE)
    failed = last(answer)
    assert failed["code"] == "invalid-location"
    assert (
        "another table's log lies in the table's folder, at 'theirs/_delta_log" in failed["detail"]
    )
    assert theirs.exists()


def test_nor_by_an_inventory_that_leaves_the_log_out(guarded, theirs):
    entry = {"path": "theirs/part", "length": 2, "isDir": False, "modificationTime": 0}
    body = "\n".join(map(json.dumps, [AT_ONCE, entry]))
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        answer = client.post(
            f"/tables/{TABLE}/vacuum",
            content=body,
            headers={"Content-Type": "application/x-ndjson"},
        )
    assert answer.status_code == 422
    assert "expected no inventory" in answer.json()["detail"]
    assert theirs.exists()


def test_an_admin_of_everything_may(guarded, theirs):
    with guarded.client(guarded.token("admin", "*")) as client:
        assert last(client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE))["stage"] == "ended"
    assert not theirs.exists()


def test_without_another_log_below_it_goes_on(guarded, theirs):
    for path in (theirs.parent / "_delta_log").iterdir():
        path.unlink()
    (theirs.parent / "_delta_log").rmdir()
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        assert last(client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE))["stage"] == "ended"
    assert not theirs.exists()


@pytest.fixture
def around(guarded, lake):
    """A file of somebody's table, in whose partition somebody else has created a table."""
    file = lake / "x" / "p=1" / "part"
    file.parent.mkdir(parents=True)
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        created = client.post("/tables", json=body(f"{lake.as_uri()}/x/p=1"))
        assert created.status_code == 201, created.text
    for path in (file, lake / "x" / "_delta_log" / f"{0:020d}.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
        at = time.time() - OLD_S
        os.utime(path, (at, at))
    return file


def body(location, name=TABLE):
    return {"name": name, "schema": SCHEMA, "location": location}


def test_it_deletes_nothing_where_another_log_lies_above(guarded, around):
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        answer = client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE)
    assert around.exists()
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "invalid-location"
    assert "lies in another table's folder, whose log is at 'file://" in answer.json()["detail"]
    assert "/lake/x/_delta_log" in answer.json()["detail"]


def test_below_another_log_an_admin_of_everything_may(guarded, around):
    with guarded.client(guarded.token("admin", "*")) as client:
        assert last(client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE))["stage"] == "ended"
    assert not around.exists()


def test_no_table_is_made_in_another_ones_folder(guarded, around, lake):
    nested = f"{lake.as_uri()}/x/p=2"
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        refused = client.post("/tables", json=body(nested, "main.mine.u"))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-location")
        assert not (lake / "x" / "p=2").exists()
        (lake / "x" / "p=2").mkdir()
        (lake / "x" / "p=1" / "_delta_log").rename(lake / "x" / "p=2" / "_delta_log")
        refused = client.post("/tables/register", json={"name": "main.mine.u", "location": nested})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-location")
    with guarded.client(guarded.token("admin", "*")) as client:
        registered = client.post(
            "/tables/register", json={"name": "main.mine.u", "location": nested}
        )
        assert registered.status_code == 201, registered.text


def test_nor_where_the_service_puts_one_below_an_allowed_location(
    start_service, database_url, tmp_path
):
    """Which may be inside the warehouse, and is everybody's there."""
    place = tmp_path / "warehouse" / "main"
    place.mkdir(parents=True)
    service = start_service(auth="tokens", allowed_locations=[place.as_uri()])
    guarded = Guarded(service.url, database_url)
    log = place / "mine" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_bytes(b"{}")
    named = {"name": TABLE, "schema": SCHEMA}
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        refused = client.post("/tables", json=named)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-location")
    with guarded.client(guarded.token("admin", "*")) as client:
        assert client.post("/tables", json=named).status_code == 201


@pytest.fixture
def others_folder(guarded, tmp_path):
    """A file of a table below one that an admin of everything has put into another scope's folder
    of the warehouse."""
    file = tmp_path / "warehouse" / "main" / "theirs" / "x" / "y" / "part"
    with guarded.client(guarded.token("admin", "*")) as client:
        created = client.post("/tables", json=body(file.parent.parent.as_uri()))
        assert created.status_code == 201, created.text
    for path in (file, file.parent / "_delta_log" / f"{0:020d}.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
        at = time.time() - OLD_S
        os.utime(path, (at, at))
    return file


def test_nor_in_another_scopes_folder_of_the_warehouse(guarded, others_folder):
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        assert last(client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE))["code"] == (
            "invalid-location"
        )
    assert others_folder.exists()


def test_an_admin_of_that_scope_may(guarded, others_folder):
    with guarded.client(guarded.token("admin", "main.mine", "main.theirs.x")) as client:
        assert last(client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE))["stage"] == "ended"
    assert not others_folder.exists()


def test_nor_in_a_folder_of_a_bucket(start_service, database_url, s3_server, s3_prefix):
    service = start_service(
        auth="tokens", allowed_locations=[s3_prefix], storage_options=s3_server.storage_options
    )
    guarded = Guarded(service.url, database_url)
    bucket = S3Store(s3_server.bucket, config=s3_server.storage_options)
    key = s3_prefix.removeprefix("s3://").partition("/")[2]
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        created = client.post("/tables", json=body(f"{s3_prefix}/x/p=1"))
        assert created.status_code == 201, created.text
        obstore.put(bucket, f"{key}/x/_delta_log/{0:020d}.json", b"{}")
        vacuum = client.post(f"/tables/{TABLE}/vacuum", json=AT_ONCE)
        assert (vacuum.status_code, vacuum.json()["code"]) == (422, "invalid-location")
        refused = client.post("/tables", json=body(f"{s3_prefix}/x/p=2", "main.mine.u"))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-location")


@pytest.fixture
def forgotten(guarded, lake):
    """The place of a table that was forgotten here. Its log remains."""
    place = f"{lake.as_uri()}/x"
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        assert client.post("/tables", json=body(place)).status_code == 201
        assert client.delete(f"/tables/{TABLE}").status_code == 204
    assert any((lake / "x" / "_delta_log").iterdir())
    return place


def test_what_its_own_admin_has_forgotten_is_no_strangers_log(guarded, forgotten):
    """Neither to a creation nor to a registration. To a vacuum it is: another writer may have made
    a table there since."""
    name, place = "main.mine.u", f"{forgotten}/p=1"
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        created = client.post("/tables", json=body(place, name))
        assert created.status_code == 201, created.text
        vacuum = client.post(f"/tables/{name}/vacuum", json=AT_ONCE)
        assert (vacuum.status_code, vacuum.json()["code"]) == (422, "invalid-location")
        assert client.delete(f"/tables/{name}").status_code == 204
        registered = client.post("/tables/register", json={"name": name, "location": place})
        assert registered.status_code == 201, registered.text


def test_another_ones_is(guarded, forgotten, lake):
    """Its place is answered like one in use; what the index knows comes before what logs say."""
    place = f"{forgotten}/p=1"
    with guarded.client(guarded.token("admin", "main.others")) as client:
        for path, asked in (
            ("/tables", body(place, "main.others.t")),
            ("/tables/register", {"name": "main.others.t", "location": place}),
        ):
            refused = client.post(path, json=asked)
            assert (refused.status_code, refused.json()["code"]) == (409, "table-exists")
    with guarded.client(guarded.token("admin", "*")) as client:
        around = client.post("/tables", json=body(f"{lake.as_uri()}/y", "main.others.t"))
        assert around.status_code == 201, around.text
        assert client.delete("/tables/main.others.t").status_code == 204
        inside = client.post("/tables", json=body(f"{lake.as_uri()}/y/z", "main.mine.v"))
        assert inside.status_code == 201, inside.text
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        vacuum = client.post("/tables/main.mine.v/vacuum", json=AT_ONCE)
        assert (vacuum.status_code, vacuum.json()["code"]) == (422, "invalid-location")


def test_it_is_a_strangers_once_nothing_is_kept_of_it(guarded, forgotten):
    with guarded.client(guarded.token("admin", "*")) as client:
        (kept,) = client.get("/forgotten-tables").json()["tables"]
        assert client.delete(f"/forgotten-tables/{kept['id']}").status_code == 204
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        refused = client.post("/tables", json=body(f"{forgotten}/p=1"))
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-location")


def test_inside_a_table_of_this_service_a_place_is_in_use(guarded, lake):
    place = f"{lake.as_uri()}/x"
    with guarded.client(guarded.token("admin", "main.mine")) as client:
        assert client.post("/tables", json=body(place)).status_code == 201
        for path, asked in (
            ("/tables", body(f"{place}/p=1", "main.mine.u")),
            ("/tables/register", {"name": "main.mine.u", "location": f"{place}/p=1"}),
        ):
            refused = client.post(path, json=asked)
            assert (refused.status_code, refused.json()["code"]) == (409, "table-exists")

"""Every path and location of the corpus, over HTTP: what is taken, and what is refused how."""

import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.builders.flights import add, proposal, remove, table_body
from tests.servers.postgres import cloned
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE
from tests.service.api.routes import hostile_paths as corpus
from tests.service.api.routes.hostile_paths import LOCATIONS, OK, PATHS, VECTORS
from tests.service.serving import DocumentedClient, running
from tidegate_service.settings import Settings

STATS = '{"numRecords":3,"tightBounds":false}'


def sent(body: object) -> bytes:
    """As JSON of ASCII: a lone surrogate goes out as its escape."""
    return json.dumps(body).encode("ascii")


def verdict(answer: httpx.Response) -> str:
    if answer.status_code in (200, 201):
        return OK
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"].isprintable()
    assert len(answer.content) < 3000, "an answer repeats little of what it was sent"
    return str(answer.json()["code"])


@pytest.fixture(scope="module")
def table(shared_server) -> Iterator[str]:
    """A table that takes deletion vectors, and that nothing here changes."""
    name = f"main.hostile.{uuid.uuid4().hex}"
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    with httpx.Client(base_url=f"{shared_server}/api/v1") as client:
        client.post("/tables", json=table_body(name, properties=properties)).raise_for_status()
        yield name
        assert client.get(f"/tables/{name}").json()["latest_version"] == 0


ASKED = [
    *(("add", name) for name in PATHS),
    *itertools.product(("remove", "cdc"), list(PATHS)[::7]),
]
"""One rule for the paths of all actions."""


class TestActionPaths:
    @pytest.mark.parametrize(("kind", "name"), ASKED)
    def test_each(self, shared_api, table, kind, name):
        path, expected = PATHS[name]
        action = {
            "add": add(path),
            "remove": remove(path),
            "cdc": {
                "cdc": {
                    "path": path,
                    "partitionValues": {"month": "5"},
                    "size": 10,
                    "dataChange": False,
                }
            },
        }[kind]
        body = proposal(action, read_version=0, operation="DELETE")
        answer = shared_api.post(
            f"/tables/{table}/conflict-check", content=sent(body), headers=JSON_TYPE
        )
        if kind == "remove" and expected == "taken":
            # A file may have the path, but the table has no such file.
            expected = "invalid-action"
        assert verdict(answer) == expected

    @pytest.mark.parametrize(
        ("path", "expected"),
        [case for case in PATHS.values() if case[1] == corpus.BAD],
        ids=[name for name, case in PATHS.items() if case[1] == corpus.BAD],
    )
    def test_a_path_that_was_read_is_no_defect(self, shared_api, table, path, expected):
        del expected  # It names a file that is not there, whatever it looks like.
        body = proposal(add(), read_version=0, reads={"files": [path]})
        answer = shared_api.post(
            f"/tables/{table}/conflict-check", content=sent(body), headers=JSON_TYPE
        )
        assert answer.status_code in (200, 422)


class TestDeletionVectors:
    @pytest.mark.parametrize(
        ("storage_type", "path", "expected"), VECTORS.values(), ids=VECTORS.keys()
    )
    def test_each(self, shared_api, table, storage_type, path, expected):
        vector = {
            "storageType": storage_type,
            "pathOrInlineDv": path,
            "offset": 1,
            "sizeInBytes": 34,
            "cardinality": 1,
        }
        body = proposal(add(stats=STATS, deletionVector=vector), read_version=0)
        answer = shared_api.post(
            f"/tables/{table}/conflict-check", content=sent(body), headers=JSON_TYPE
        )
        assert verdict(answer) == expected


@pytest.fixture(scope="module")
def lake(
    postgres_server, migrated_template, tmp_path_factory
) -> Iterator[tuple[httpx.Client, Path]]:
    """A client of a service with one allowed location, and the folder that this is."""
    folder = tmp_path_factory.mktemp("allowed") / "root"
    folder.mkdir()
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path_factory.mktemp("lake"),
            port=0,
            allowed_locations=(folder.as_uri(),),
            # Nothing but the requests writes there.
            upkeep_share=0.0,
        )
        with (
            running(settings) as service,
            DocumentedClient(base_url=f"{service.url}/api/v1") as client,
        ):
            yield client, folder


class TestLocations:
    @pytest.mark.parametrize(("location", "expected"), LOCATIONS.values(), ids=LOCATIONS.keys())
    @pytest.mark.parametrize("call", ["create", "register"])
    def test_each(self, lake, location, expected, call):
        client, folder = lake
        location = location.replace("{root}", folder.as_uri()).replace("{folder}", str(folder))
        name = f"main.hostile.t{uuid.uuid4().hex}"
        before = sorted(folder.parent.rglob("*"))
        if call == "create":
            body, path = table_body(name, location=location), "/tables"
        else:
            body, path = {"name": name, "location": location}, "/tables/register"
        answer = client.post(path, content=sent(body), headers=JSON_TYPE)
        if expected == OK and call == "register":
            # There is no log, or the table that `create` has made: not the location's fault.
            assert answer.json().get("code") != "invalid-location"
            return
        assert verdict(answer) == expected
        if expected == OK:
            assert client.get(f"/tables/{name}").json()["location"].startswith(folder.as_uri())
        else:
            assert client.get(f"/tables/{name}").status_code == 404
            assert sorted(folder.parent.rglob("*")) == before

    @pytest.mark.parametrize("target", ["", "/inside", "/inside/further"])
    def test_a_link_out_of_the_root_is_not_followed(self, lake, tmp_path, target):
        client, folder = lake
        outside = tmp_path / "outside"
        outside.mkdir()
        link = folder / f"link-{uuid.uuid4().hex}"
        link.symlink_to(outside)
        name = f"main.hostile.t{uuid.uuid4().hex}"
        answer = client.post("/tables", json=table_body(name, location=link.as_uri() + target))
        # What lies at a place is looked for before anything is put there.
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-location")
        assert list(outside.iterdir()) == []
        assert str(outside) not in answer.text

"""POST /tables/register, `Lake.register_table` and `tidegate table register`."""

import json
import uuid
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import tidegate
from tests.builders.by_x import add
from tests.builders.flights import proposal
from tests.service.process.cli.command_line import invoke
from tests.service.tables.delta_logs import DeltaLog

ROWS = {"x": [1, 2, 3], "v": ["a", "b", "c"]}


@pytest.fixture
def name() -> str:
    return f"main.air.{uuid.uuid4().hex}"


@pytest.fixture
def nothing(shared_api) -> Path:
    """A place in the warehouse at which there is none."""
    asked = {"name": f"legacy.past.{uuid.uuid4().hex}"}
    found = shared_api.get("/tables/default-location", params=asked).json()["location"]
    return Path(found.removeprefix("file://"))


@pytest.fixture
def folder(nothing) -> Path:
    """A table of two versions that deltalake wrote into the warehouse."""
    for mode in ("error", "append"):
        deltalake.write_deltalake(nothing, pa.table(ROWS), partition_by=["x"], mode=mode)
    return nothing


def body(folder, name: str) -> dict[str, str]:
    return {"name": name, "location": folder.as_uri()}


class TestRegister:
    def test_it_answers_with_the_head_of_the_log(self, shared_api, name, folder):
        answer = shared_api.post("/tables/register", json=body(folder, name))

        assert answer.status_code == 201
        assert answer.headers["location"] == f"/api/v1/tables/{name}"
        head = answer.json()
        assert head == shared_api.get(f"/tables/{name}").json()
        assert (head["first_version"], head["latest_version"]) == (0, 1)
        assert (head["location"], head["catalog_managed"]) == (folder.as_uri(), False)
        assert head["num_files"] == 6
        theirs = deltalake.DeltaTable(folder)
        assert json.loads(head["metadata"]["schemaString"]) == json.loads(theirs.schema().to_json())

    def test_it_answers_200_the_second_time(self, shared_api, name, folder):
        first = shared_api.post("/tables/register", json=body(folder, name))
        again = shared_api.post("/tables/register", json=body(folder, name.upper()))
        assert again.status_code == 200
        assert again.headers["location"] == first.headers["location"]
        assert again.json() == first.json()

    def test_it_can_be_written_to_and_read_by_others(self, shared_api, name, folder):
        shared_api.post("/tables/register", json=body(folder, name))
        data = next(folder.glob("x=1/*.parquet"))
        added = {
            "add": {
                "path": "x=1/copy.parquet",
                "partitionValues": {"x": "1"},
                "size": data.stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        }
        (folder / "x=1" / "copy.parquet").write_bytes(data.read_bytes())
        landed = shared_api.post(f"/tables/{name}/commits", json=proposal(added, read_version=0))
        assert (landed.status_code, landed.json()["version"]) == (201, 2)
        theirs = deltalake.DeltaTable(folder)
        assert theirs.version() == 2
        assert theirs.to_pyarrow_dataset().count_rows() == 7

    def test_its_past_is_there(self, shared_api, name, folder):
        shared_api.post("/tables/register", json=body(folder, name))
        commits = shared_api.get(f"/tables/{name}/commits").json()["commits"]
        assert [(commit["version"], commit["foreign"]) for commit in commits] == [
            (1, True),
            (0, True),
        ]
        first = shared_api.get(f"/tables/{name}/commits/0")
        assert first.content == (folder / "_delta_log" / f"{0:020}.json").read_bytes()
        scanned = shared_api.post(f"/tables/{name}/scan", json={"version": 0})
        assert len(scanned.json()["files"]) == 3

    def test_a_past_that_is_gone_is_not(self, shared_api, name, folder):
        deltalake.DeltaTable(folder).create_checkpoint()
        for version in (0, 1):
            (folder / "_delta_log" / f"{version:020}.json").unlink()
        head = shared_api.post("/tables/register", json=body(folder, name)).json()
        assert (head["first_version"], head["latest_version"]) == (1, 1)
        (base,) = shared_api.get(f"/tables/{name}/commits").json()["commits"]
        assert (base["version"], base["content_sha256"], base["operation"]) == (1, None, None)
        for call in (
            shared_api.get(f"/tables/{name}/commits/0"),
            shared_api.get(f"/tables/{name}/commits/1"),
            shared_api.post(f"/tables/{name}/scan", json={"version": 0}),
            shared_api.post(f"/tables/{name}/scan", json={"timestamp": 1}),
        ):
            assert (call.status_code, call.json()["code"]) == (404, "version-not-found")
        too_old = shared_api.post(f"/tables/{name}/conflict-check", json=proposal(read_version=0))
        assert (too_old.status_code, too_old.json()["code"]) == (409, "read-version-too-old")
        assert len(shared_api.post(f"/tables/{name}/scan", json={}).json()["files"]) == 6


class TestRefused:
    def test_a_broken_log(self, shared_api, name, folder):
        (folder / "_delta_log" / f"{0:020}.json").unlink()
        answer = shared_api.post("/tables/register", json=body(folder, name))
        assert (answer.status_code, answer.json()["code"]) == (422, "broken-log")
        assert "version 0 is missing" in answer.json()["detail"]
        assert shared_api.get(f"/tables/{name}").status_code == 404

    def test_a_file_elsewhere(self, shared_api, name, nothing):
        log = DeltaLog(nothing)
        log.first(add("/etc/passwd"))
        answer = shared_api.post("/tables/register", json=body(log.table, name))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-path")

    @pytest.mark.parametrize(
        ("change", "status", "code"),
        [
            ({"name": "short"}, 422, "invalid-name"),
            ({"location": "file:///etc"}, 422, "invalid-location"),
            ({"location": None}, 422, "invalid-request"),
            ({"more": 1}, 422, "invalid-request"),
            ({"name": "main.air.missing"}, 422, "broken-log"),
        ],
    )
    def test_what_can_never_be(self, shared_api, nothing, change, status, code):
        wanted = {"name": "main.air.none", "location": nothing.as_uri(), **change}
        answer = shared_api.post("/tables/register", json=wanted)
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    def test_a_name_or_location_in_use(self, shared_api, name, folder):
        shared_api.post("/tables/register", json=body(folder, name))
        for taken in (body(folder, f"{name}_2"), body(folder / "inside", f"{name}_3")):
            answer = shared_api.post("/tables/register", json=taken)
            assert (answer.status_code, answer.json()["code"]) == (409, "table-exists")


class TestClient:
    def test_a_table_is_registered_once(self, shared_server, name, folder):
        with tidegate.connect(shared_server) as lake:
            table = lake.register_table(name, folder.as_uri())
            again = lake.register_table(name, folder.as_uri())
            assert again.head().id == table.head().id
            assert (table.head().version, table.head().num_files) == (1, 6)


class TestCommandLine:
    def test_it_prints_the_head(self, shared_server, name, folder):
        done = invoke("table", "register", name, folder.as_uri(), "--url", shared_server)
        assert done.exit_code == 0, done.stderr
        assert "version         1 (published 1)" in done.stdout

    def test_it_prints_json(self, shared_server, name, folder):
        done = invoke("table", "register", name, folder.as_uri(), "--url", shared_server, "--json")
        assert json.loads(done.stdout)["latest_version"] == 1

    def test_it_says_why_not(self, shared_server, name, nothing):
        done = invoke("table", "register", name, nothing.as_uri(), "--url", shared_server)
        assert done.exit_code != 0
        assert "broken-log: the log cannot be read: there is no commit" in done.stderr

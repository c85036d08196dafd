"""POST /tables/register, `Lake.register_table` and `tidegate table register`."""

import json

import deltalake
import pyarrow as pa
import pytest

import tidegate
from tests.builders.by_x import add
from tests.builders.flights import TABLE, proposal
from tests.service.process.cli.command_line import invoke
from tests.service.tables.delta_logs import DeltaLog

ROWS = {"x": [1, 2, 3], "v": ["a", "b", "c"]}


@pytest.fixture
def folder(tmp_path):
    """A table of two versions that deltalake wrote into the warehouse."""
    folder = tmp_path / "warehouse" / "legacy" / "t"
    for mode in ("error", "append"):
        deltalake.write_deltalake(folder, pa.table(ROWS), partition_by=["x"], mode=mode)
    return folder


def body(folder, name: str = TABLE) -> dict[str, str]:
    return {"name": name, "location": folder.as_uri()}


class TestRegister:
    def test_it_answers_with_the_head_of_the_log(self, api, folder):
        answer = api.post("/tables/register", json=body(folder))

        assert answer.status_code == 201
        assert answer.headers["location"] == f"/api/v1/tables/{TABLE}"
        head = answer.json()
        assert head == api.get(f"/tables/{TABLE}").json()
        assert (head["first_version"], head["latest_version"]) == (0, 1)
        assert (head["location"], head["catalog_managed"]) == (folder.as_uri(), False)
        assert head["num_files"] == 6
        theirs = deltalake.DeltaTable(folder)
        assert json.loads(head["metadata"]["schemaString"]) == json.loads(theirs.schema().to_json())

    def test_it_answers_200_the_second_time(self, api, folder):
        first = api.post("/tables/register", json=body(folder))
        again = api.post("/tables/register", json=body(folder, TABLE.upper()))
        assert again.status_code == 200
        assert again.headers["location"] == first.headers["location"]
        assert again.json() == first.json()

    def test_it_can_be_written_to_and_read_by_others(self, api, folder):
        api.post("/tables/register", json=body(folder))
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
        landed = api.post(f"/tables/{TABLE}/commits", json=proposal(added, read_version=0))
        assert (landed.status_code, landed.json()["version"]) == (201, 2)
        theirs = deltalake.DeltaTable(folder)
        assert theirs.version() == 2
        assert theirs.to_pyarrow_dataset().count_rows() == 7

    def test_its_past_is_there(self, api, folder):
        api.post("/tables/register", json=body(folder))
        commits = api.get(f"/tables/{TABLE}/commits").json()["commits"]
        assert [(commit["version"], commit["foreign"]) for commit in commits] == [
            (1, True),
            (0, True),
        ]
        first = api.get(f"/tables/{TABLE}/commits/0")
        assert first.content == (folder / "_delta_log" / f"{0:020}.json").read_bytes()
        assert len(api.post(f"/tables/{TABLE}/scan", json={"version": 0}).json()["files"]) == 3

    def test_a_past_that_is_gone_is_not(self, api, folder):
        deltalake.DeltaTable(folder).create_checkpoint()
        for version in (0, 1):
            (folder / "_delta_log" / f"{version:020}.json").unlink()
        head = api.post("/tables/register", json=body(folder)).json()
        assert (head["first_version"], head["latest_version"]) == (1, 1)
        (base,) = api.get(f"/tables/{TABLE}/commits").json()["commits"]
        assert (base["version"], base["content_sha256"], base["operation"]) == (1, None, None)
        for call in (
            api.get(f"/tables/{TABLE}/commits/0"),
            api.get(f"/tables/{TABLE}/commits/1"),
            api.post(f"/tables/{TABLE}/scan", json={"version": 0}),
            api.post(f"/tables/{TABLE}/scan", json={"timestamp": 1}),
        ):
            assert (call.status_code, call.json()["code"]) == (404, "version-not-found")
        too_old = api.post(f"/tables/{TABLE}/conflict-check", json=proposal(read_version=0))
        assert (too_old.status_code, too_old.json()["code"]) == (409, "read-version-too-old")
        assert len(api.post(f"/tables/{TABLE}/scan", json={}).json()["files"]) == 6


class TestRefused:
    def test_a_broken_log(self, api, folder):
        (folder / "_delta_log" / f"{0:020}.json").unlink()
        answer = api.post("/tables/register", json=body(folder))
        assert (answer.status_code, answer.json()["code"]) == (422, "broken-log")
        assert "version 0 is missing" in answer.json()["detail"]
        assert api.get(f"/tables/{TABLE}").status_code == 404

    def test_a_file_elsewhere(self, api, tmp_path):
        log = DeltaLog(tmp_path / "warehouse" / "t")
        log.first(add("/etc/passwd"))
        answer = api.post("/tables/register", json=body(log.table))
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
    def test_what_can_never_be(self, api, tmp_path, change, status, code):
        wanted = {"name": TABLE, "location": (tmp_path / "warehouse" / "none").as_uri(), **change}
        answer = api.post("/tables/register", json=wanted)
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    def test_a_name_or_location_in_use(self, api, folder):
        api.post("/tables/register", json=body(folder))
        for taken in (body(folder, "main.air.second"), body(folder / "inside", "main.air.third")):
            answer = api.post("/tables/register", json=taken)
            assert (answer.status_code, answer.json()["code"]) == (409, "table-exists")


class TestClient:
    def test_a_table_is_registered_once(self, server, folder):
        with tidegate.connect(server) as lake:
            table = lake.register_table(TABLE, folder.as_uri())
            again = lake.register_table(TABLE, folder.as_uri())
            assert again.head().id == table.head().id
            assert (table.head().version, table.head().num_files) == (1, 6)


class TestCommandLine:
    def test_it_prints_the_head(self, server, folder):
        done = invoke("table", "register", TABLE, folder.as_uri(), "--url", server)
        assert done.exit_code == 0, done.stderr
        assert "version         1 (published 1)" in done.stdout

    def test_it_prints_json(self, server, folder):
        done = invoke("table", "register", TABLE, folder.as_uri(), "--url", server, "--json")
        assert json.loads(done.stdout)["latest_version"] == 1

    def test_it_says_why_not(self, server, tmp_path):
        location = (tmp_path / "warehouse" / "none").as_uri()
        done = invoke("table", "register", TABLE, location, "--url", server)
        assert done.exit_code != 0
        assert "broken-log: the log cannot be read: there is no commit" in done.stderr

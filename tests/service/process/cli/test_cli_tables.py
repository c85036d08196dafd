"""`tidegate table ...` against a running service."""

import json
import re
from pathlib import Path

import pytest

from tests.builders.flights import SCHEMA, add, proposal
from tests.service.process.cli.command_line import invoke


@pytest.fixture
def table(shared_server, tmp_path):
    """What `tidegate table ...` prints about the shared service."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))

    def run(*arguments: object) -> str:
        done = invoke("table", *arguments, "--url", shared_server)
        assert done.exit_code == 0, done.stderr
        assert ("delta.autoOptimize has no effect" in done.stderr) is ("create" in arguments)
        return done.stdout

    return run


class TestTables:
    def test_create_show_list_history(self, table, tmp_path, shared_api):
        name = f"main.cli.t{tmp_path.name.replace('_', '')}"
        made = table(
            "create",
            name,
            "--schema",
            tmp_path / "schema.json",
            "--partition-by",
            "month",
            "--property",
            "delta.appendOnly=true",
            "--property",
            "delta.autoOptimize=true",
            "--comment",
            "by hand",
            "--catalog-managed",
        )
        assert re.search(rf"^name +{name}$", made, re.M)
        shared_api.post(
            f"/tables/{name}/commits", json=proposal(add(), engine_info="\u202etests/1")
        ).raise_for_status()

        shown = table("show", name.upper())
        assert re.search(r"^kind +catalog-managed$", shown, re.M)
        assert re.search(r"^version +1 ", shown, re.M)
        assert re.search(r"^partitioned by +month$", shown, re.M)
        assert re.search(r"^property +delta.appendOnly=true$", shown, re.M)
        assert re.search(r"^column +carrier string$", shown, re.M)

        listed = table("list", name).splitlines()
        assert re.split(r" {2,}", listed[0])[:3] == ["NAME", "KIND", "VERSION"]
        assert re.split(r" {2,}", listed[1])[:4] == [name, "catalog-managed", "1", "1"]

        versions = table("history", name).splitlines()
        assert [line.split()[0] for line in versions] == ["VERSION", "1", "0"]
        # What would turn the line around in a terminal is shown, not sent.
        assert "\\u202etests/1" in versions[1]
        assert len(table("history", name, "--limit", 1).splitlines()) == 2

    def test_metadata_as_in_deltas_first_versions(self, table, shared_api, flights):
        log = Path(shared_api.get(f"/tables/{flights}").json()["location"].removeprefix("file://"))
        line = {"metaData": {"id": "5", "schemaString": json.dumps(SCHEMA), "configuration": None}}
        (log / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(line))
        shown = table("show", flights)
        assert re.search(r"^partitioned by +nothing$", shown, re.M)
        assert re.search(r"^column +carrier string$", shown, re.M)
        del line["metaData"]["schemaString"]
        (log / "_delta_log" / f"{2:020d}.json").write_text(json.dumps(line))
        assert "column" not in table("show", flights)

    def test_json_is_the_services_answer(self, table, shared_api, flights):
        shown = json.loads(table("show", flights, "--json"))
        assert shown.pop("upkeep")["table"] == flights
        assert shown == shared_api.get(f"/tables/{flights}").json()
        assert (
            json.loads(table("history", flights, "--json"))
            == (shared_api.get(f"/tables/{flights}/commits").json()["commits"])
        )
        assert [found["name"] for found in json.loads(table("list", flights, "--json"))] == [
            flights
        ]

    def test_no_tables_is_a_heading(self, table):
        assert len(table("list", "nobody.has.this").splitlines()) == 1


class TestTableFailures:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["show", "a.b.c"], "table-not-found: there is no table 'a.b.c'"),
            (["show", "a%b"], "table-not-found"),
            (["history", "\u00e9"], "table-not-found"),
            (["create", "nope", "--schema", "schema.json"], "invalid-name: "),
            (["create", "a.b.c", "--schema", "none.json"], "none.json cannot be read"),
            (["create", "a.b.c", "--schema", "bad.json"], "bad.json cannot be read"),
            (
                ["create", "a.b.c", "--schema", "schema.json", "--property", "x"],
                "expected --property NAME=VALUE",
            ),
        ],
    )
    def test_they_are_said_in_a_line(
        self, shared_server, tmp_path, monkeypatch, arguments, message
    ):
        monkeypatch.chdir(tmp_path)
        Path("schema.json").write_text(json.dumps(SCHEMA))
        Path("bad.json").write_text("{")
        done = invoke("table", *arguments, "--url", shared_server)
        assert done.exit_code == 1
        assert done.stdout == ""
        assert done.stderr.startswith("tidegate: ")
        assert message in done.stderr

    @pytest.mark.parametrize(
        ("url", "message"),
        [
            ("http://127.0.0.1:1", "is it running there?"),
            ("ftp://127.0.0.1", "expected a service URL"),
            ("nonsense", "expected a service URL"),
            ("http://127.0.0.1:port", "does not answer"),
        ],
    )
    def test_without_a_service(self, url, message):
        done = invoke("table", "list", TIDEGATE_URL=url)
        assert done.exit_code == 1
        assert message in done.stderr

"""Hooks are found by their entry points, named in the settings, and shown with a table."""

import importlib
import sys
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.serving import DocumentedClient, running
from tidegate_service.cli.commands import cli
from tidegate_service.core.hooks.hook import installed_hooks
from tidegate_service.database import CannotStart
from tidegate_service.settings import InvalidSettings, Settings, load

PATIENCE_S = 60.0
MODULE = """
SEEN = []


class Seeing:
    async def run(self, commit):
        if commit.operation == "DELETE":
            raise ValueError("not this one")
        SEEN.append((commit.table, commit.version))


def broken():
    raise RuntimeError("nothing to speak to")
"""
ENTRY_POINTS = """
[tidegate.hooks]
seeing = hooks_of_a_test:Seeing
broken = hooks_of_a_test:broken
nothing = hooks_of_a_test:SEEN.copy
absent = hooks_of_a_test:Absent
symlink-manifests = hooks_of_a_test:Seeing
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch):
    """A package with hooks, as an installer leaves it."""
    site = tmp_path / "site"
    info = site / "hooks_of_a_test-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "hooks_of_a_test.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hooks-of-a-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    yield importlib.import_module("hooks_of_a_test")
    sys.modules.pop("hooks_of_a_test")


@pytest.mark.usefixtures("installed")
def test_the_installed_ones_are_known():
    names = ("seeing", "broken", "nothing", "absent")
    assert installed_hooks(names) == names
    assert load({"hooks": "seeing, broken,seeing"}).hooks == ("seeing", "broken")
    assert load({"table_hooks": "seeing"}).table_hooks == ("seeing",)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("setting", ["hooks", "table_hooks"])
@pytest.mark.parametrize("name", ["seing", "symlink-manifests"])
def test_an_unknown_one_is_refused(setting: str, name: str):
    """The service's own is not a package's to replace."""
    with pytest.raises(InvalidSettings, match=f"no hook '{name}'; installed are: .*seeing"):
        load({setting: name})


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("broken", "RuntimeError: nothing to speak to"),
        ("nothing", "has no method `run`"),
        ("absent", "AttributeError"),
    ],
)
def test_one_that_cannot_be_made_is_refused_at_start(settings: Settings, name: str, why: str):
    with (
        pytest.raises(CannotStart, match=f"the hook '{name}'.*{why}"),
        running(settings.model_copy(update={"hooks": (name,)})),
    ):
        pass


def hooks_of(api: httpx.Client) -> dict[str, dict[str, object]]:
    return api.get(f"/tables/{TABLE}/upkeep").json()["hooks"]


def test_a_service_runs_them_and_shows_how_far_they_are(settings: Settings, installed):
    # Without other upkeep, too.
    with_hook = settings.model_copy(update={"hooks": ("seeing",), "upkeep_share": 0.0})
    with (
        running(with_hook) as service,
        DocumentedClient(base_url=f"{service.url}/api/v1", timeout=40.0) as api,
    ):
        assert api.post("/tables", json=table_body()).status_code == 201
        answered = api.post(f"/tables/{TABLE}/commits", json=proposal(add("a")))
        assert answered.status_code == 201
        until = time.monotonic() + PATIENCE_S
        while installed.SEEN != [(TABLE, 0), (TABLE, 1)]:
            assert time.monotonic() < until, installed.SEEN
            time.sleep(0.05)
        while hooks_of(api).get("seeing", {}).get("version") != 1:
            assert time.monotonic() < until, hooks_of(api)
            time.sleep(0.05)
        found = hooks_of(api)["seeing"]
        assert (found["commits_behind"], found["failures"]) == (0, 0)
        assert found["at"] is not None
        shown = CliRunner().invoke(cli, ["table", "show", TABLE, "--url", service.url])
        assert "hook seeing" in shown.output
        assert "1, 0 behind, 0 failures" in shown.output
        metrics = httpx.get(f"{service.url}/metrics").text
        assert 'tidegate_upkeep_runs_total{kind="hook",outcome="done"}' in metrics


def test_a_service_runs_one_for_the_tables_that_name_it(settings: Settings, installed):
    allowing = settings.model_copy(update={"table_hooks": ("seeing",), "upkeep_share": 0.0})
    naming = "main.air.naming"
    with (
        running(allowing) as service,
        DocumentedClient(base_url=f"{service.url}/api/v1", timeout=40.0) as api,
    ):
        other = table_body(naming, properties={"tidegate.hooks": "broken"})
        refused = api.post("/tables", json=other)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-request")
        assert "the hooks that tables may name are: seeing" in refused.json()["detail"]
        assert api.post("/tables", json=table_body()).status_code == 201
        made = api.post("/tables", json=table_body(naming, properties={"tidegate.hooks": "seeing"}))
        assert made.status_code == 201
        for table in (TABLE, naming):
            answered = api.post(f"/tables/{table}/commits", json=proposal(add("a")))
            assert answered.status_code == 201
        until = time.monotonic() + PATIENCE_S
        while [(naming, 0), (naming, 1)] != installed.SEEN:
            assert time.monotonic() < until, installed.SEEN
            time.sleep(0.05)
        # For as long as it is found out that a table does not name it, it is the table's.
        while hooks_of(api) != {}:
            assert time.monotonic() < until, hooks_of(api)
            time.sleep(0.05)
        assert {table for table, _ in installed.SEEN} == {naming}

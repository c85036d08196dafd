"""kill -9 before and after the steps of a checkpoint: readers meet the table as it was, and
another instance writes the checkpoint."""

import json
import shutil
from pathlib import Path

import httpx
import psycopg
import pytest
from deltalake import DeltaTable

from tests.service.instances import Deed, Instance
from tests.service.process.killed.crashing import Pair, Table, new_body
from tidegate_service.core.observe.faults import CheckpointStep, Side

V2 = {"delta.checkpointPolicy": "v2"}
# Nothing is written between the end of a step and the beginning of the next.
OF_V2 = [(CheckpointStep.PARTS_PUT, Side.BEFORE), *((step, Side.AFTER) for step in CheckpointStep)]
OF_CLASSIC = [(CheckpointStep.CHECKPOINT_PUT, Side.BEFORE), *OF_V2[2:]]
CASES = [
    pytest.param(step, side, properties, id=f"{kind}-{side.value}-{step.value}")
    for kind, points, properties in (("classic", OF_CLASSIC, {}), ("v2", OF_V2, V2))
    for step, side in points
]


def checkpoint(table: Table, instance: Instance) -> httpx.Response | None:
    try:
        return table.pair.client.post(f"{instance.api}/tables/{table.name}/checkpoint", json={})
    except httpx.TransportError:
        return None


def let_claims_end(pair: Pair) -> None:
    """As time does."""
    ended = "UPDATE table_upkeep SET claimed_until = now() WHERE claimed_by IS NOT NULL"
    with psycopg.connect(pair.database_url) as connection:
        connection.execute(ended)


def read(folder: Path, tmp_path: Path) -> tuple[int, set[str]]:
    """As a reader that comes to it now."""
    copy = tmp_path / f"copy-{len(list(tmp_path.iterdir()))}"
    shutil.copytree(folder, copy)
    found = DeltaTable(copy)
    return found.version(), set(found.get_add_actions()["path"].to_pylist())


@pytest.mark.parametrize(("step", "side", "properties"), CASES)
def test_readers_go_on_and_so_does_the_other(two, tmp_path, step, side, properties):
    table = two.create(catalog_managed=False, properties=properties)
    for _ in range(2):
        assert table.propose(two.victim, new_body()).status_code == 201
        assert checkpoint(table, two.victim).status_code == 200
    assert table.propose(two.victim, new_body()).status_code == 201
    expected = read(table.folder, tmp_path)
    assert expected[0] == 3

    two.victim.arm(step, side, Deed.KILL)
    assert checkpoint(table, two.victim) is None
    assert two.victim.ended() == -9
    assert read(table.folder, tmp_path) == expected

    let_claims_end(two)
    written = checkpoint(table, two.survivor)
    two.restart()
    assert written is not None
    assert written.json()["version"] == 3
    pointer = json.loads((table.folder / "_delta_log" / "_last_checkpoint").read_text())
    assert pointer["version"] == 3
    for commit in (table.folder / "_delta_log").glob("*.json"):
        if commit.stem.isdigit() and int(commit.stem) < 3:
            commit.unlink()
    assert read(table.folder, tmp_path) == expected

"""Eight writer processes on one table: versions without a gap, every transaction id once."""

import itertools
import json
import subprocess
import sys

import httpx
import pytest
from deltalake import DeltaTable

from tests.repository import ROOT

WRITERS = 8
COMMITS = 15
COLUMNS = [
    {"name": "writer", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "v", "type": "integer", "nullable": True, "metadata": {}},
]


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
def test_versions_are_contiguous_and_every_id_lands_once(
    server: str, api: httpx.Client, catalog_managed: bool
):
    created = api.post(
        "/tables",
        json={
            "name": "main.test.busy",
            "schema": {"type": "struct", "fields": COLUMNS},
            "partition_columns": ["writer"],
            "catalog_managed": catalog_managed,
        },
    )
    assert created.status_code == 201, created.text
    command = [
        sys.executable,
        "-m",
        "tests.service.process.writer_process",
        server,
        "main.test.busy",
    ]
    processes = [
        subprocess.Popen(
            [*command, str(writer), str(COMMITS)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in range(WRITERS)
    ]
    receipts = []
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        receipts.extend(json.loads(line) for line in output.splitlines())

    total = WRITERS * COMMITS
    assert sorted(receipt["version"] for receipt in receipts) == list(range(1, total + 1))
    by_version = {receipt["version"]: receipt["transaction_id"] for receipt in receipts}
    history = api.get("/tables/main.test.busy/commits", params={"limit": 1000}).json()["commits"]
    assert [commit["version"] for commit in history] == list(range(total, -1, -1))
    assert {c["version"]: c["transaction_id"] for c in history if c["version"]} == by_version
    timestamps = [commit["timestamp"] for commit in reversed(history)]
    assert all(earlier < later for earlier, later in itertools.pairwise(timestamps))
    assert any(commit["rebased_over"] for commit in history)

    # What is live, by whoever looks: the service's scan, and a reader of the log alone.
    scan = api.post("/tables/main.test.busy/scan", json={}).json()
    live = sorted(file["add"]["path"] for file in scan["files"])
    last_replacement = (COMMITS - 1) // 3 * 3
    assert live == sorted(
        f"writer={writer}/{number}.parquet"
        for writer in range(WRITERS)
        for number in range(last_replacement, COMMITS)
    )
    if not catalog_managed:
        table = DeltaTable(created.json()["location"])
        assert table.version() == total
        assert sorted(table.get_add_actions().column("path").to_pylist()) == live

"""A stream whose driver is killed at each step of a batch, and started again."""

import signal
import subprocess
import sys

import pytest

from tests.repository import ROOT
from tests.spark.streams.dying import STEPS
from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, rows


@pytest.mark.parametrize("step", STEPS)
def test_the_batch_lands_once(session, lake, create, tmp_path, step):
    table = create("id bigint, month int", "month")
    stream = Stream(session, tmp_path, "id bigint, month int")
    stream.feed('{"id":1,"month":5}', '{"id":2,"month":6}')
    died = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.spark.streams.dying",
            lake.url,
            table.id,
            tmp_path,
            step,
        ],
        cwd=ROOT,
        start_new_session=True,
        capture_output=True,
        timeout=300,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    assert table.version == (0 if step == "files written" else 1)
    query = stream.run(lambda writer: writer.foreachBatch(table.sink()))
    assert rows(table.read(session)) == [(1, 5), (2, 6)]
    assert table.version == 1
    (txn,) = actions(table, 1, "txn")
    assert (txn["appId"], txn["version"]) == (query.id, 0)
    assert table.txn_version(query.id) == 0

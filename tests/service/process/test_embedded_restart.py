"""An embedded Postgres that dies is started again, and no commit is lost or repeated."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidegate
from tests.memory import folder_of_tests
from tests.service.serving import Running, running
from tidegate_service.settings import Settings


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A short path, as sockets need one."""
    with tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as folder:
        yield Path(folder)


@pytest.fixture
def embedded(data_dir: Path) -> Iterator[Running]:
    with running(Settings(data_dir=data_dir, port=0)) as service:
        yield service


def append(table: tidegate.Table, path: str) -> tidegate.Receipt:
    with table.transaction() as txn:
        file = tidegate.DataFile(
            path=path,
            partition_values={},
            size=1,
            modification_time=1,
            data_change=True,
        )
        txn.add([file])
        return txn.commit("WRITE")


def test_a_killed_server_comes_back_with_everything(embedded: Running, data_dir: Path):
    schema = {
        "type": "struct",
        "fields": [{"name": "v", "type": "integer", "nullable": True, "metadata": {}}],
    }
    with tidegate.connect(embedded.url) as lake:
        table = lake.create_table("main.test.t", schema=schema)
        assert append(table, "a").version == 1
        (pid_file,) = data_dir.rglob("postmaster.pid")
        os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
        # The client asks again, with the same transaction id, while the answer is 503.
        assert append(table, "b").version == 2
        assert [commit.version for commit in table.history()] == [2, 1, 0]
        assert sorted(file.path for file in table.scan().files) == ["a", "b"]

"""A file may end the process that reads it: that is not the service's."""

import io
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.service.tables.delta_logs import DeltaLog, line
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.checkpoints.apart import forking, readers
from tidegate_service.storage.checkpoints.apart.readers import PROCESSES, ReaderProcesses
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.limits import CheckpointLimits

ROWS = [line(Txn(app_id=f"a{number}", version=number)) for number in range(50_000)]
DAMAGED = Path(__file__).parent / "damaged"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> bytes:
    return DeltaLog(tmp_path_factory.mktemp("log")).checkpoint(0, ROWS).read_bytes()


def read(
    file: io.BytesIO, budget: Budget | None = None, *, processes: ReaderProcesses = PROCESSES
) -> list[bytes]:
    size = file.seek(0, os.SEEK_END)
    batches = processes.lines(file, "a.parquet", budget or Budget(), size=size)
    return [found for lines in batches for found in lines]


def forked() -> psutil.Process:
    (found,) = (
        child
        for child in psutil.Process().children()
        if any(forking.__name__ in part for part in child.cmdline())
    )
    return found


class Watched(io.BytesIO):
    """A file of which reading does something else, too."""

    def __init__(self, content: bytes, done) -> None:
        super().__init__(content)
        self._done = done
        self.reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        self._done(self)
        return super().read(size)


@pytest.mark.anyio
async def test_a_footer_at_which_arrow_aborts(tmp_path):
    """Its size statistics have a histogram that is shorter than the column is deep."""
    log = DeltaLog(tmp_path / "t")
    path = log.path(0, "checkpoint.parquet")
    shutil.copy(DAMAGED / "histogram.parquet", path)
    stored = ObjectStorage(tmp_path.as_uri()).log(log.location)
    with pytest.raises(UnreadableFile, match=r"the process that read it ended \(SIGABRT\)"):
        async for _ in stored.checkpoint_actions(path.name):
            pass


@pytest.mark.parametrize(
    ("number", "raised"),
    [
        (signal.SIGSEGV, UnreadableFile),
        (signal.SIGPROF, UnreadableFile),
        (signal.SIGKILL, StorageUnavailable),
    ],
)
def test_a_reader_that_ends_ends_alone(checkpoint, number, raised):
    """What comes from outside says nothing of the file."""
    assert len(read(io.BytesIO(checkpoint))) == len(ROWS)
    before = set(forked().children())
    other = PROCESSES.lines(io.BytesIO(checkpoint), "b.parquet", Budget(), size=len(checkpoint))
    rest = len(next(other))
    (spared,) = set(forked().children()) - before

    def kill(file: Watched) -> None:
        if file.reads == 3:
            for child in forked().children():
                if child not in {spared, *before}:
                    child.send_signal(number)

    with pytest.raises(raised, match="ended"):
        read(Watched(checkpoint, kill))
    assert rest + sum(map(len, other)) == len(ROWS)


def test_nothing_is_left_of_a_reader_whose_caller_leaves(checkpoint):
    before = set(forked().children())
    lines = PROCESSES.lines(io.BytesIO(checkpoint), "a.parquet", Budget(), size=len(checkpoint))
    next(lines)
    (left,) = set(forked().children()) - before
    lines.close()
    left.wait(20)
    assert not set(forked().children()) - before


def test_a_footer_that_is_exchanged_is_not_read_again(checkpoint):
    """It is checked, and then Arrow reads it."""
    length = 8 + int.from_bytes(checkpoint[-8:-4], "little")

    def exchange(file: Watched) -> None:
        if file.reads == 3:
            at = file.tell()
            file.seek(-length, os.SEEK_END)
            file.write(b"\xff" * (length - 8))
            file.seek(at)

    assert len(read(Watched(checkpoint, exchange))) == len(ROWS)


def test_the_system_bounds_the_memory_of_a_reader(checkpoint):
    """However much it has before it begins."""
    budget = Budget(CheckpointLimits(memory_bytes=0))
    with pytest.raises((TooLarge, UnreadableFile), match=r"memory|malloc"):
        read(io.BytesIO(checkpoint), budget)


def test_what_is_taken_is_taken_of_the_callers_budget(checkpoint):
    size = sum(len(line) for line in read(io.BytesIO(checkpoint)))
    budget = Budget(CheckpointLimits(free_bytes=10 * size))
    read(io.BytesIO(checkpoint), budget)
    assert budget.left < 9 * size
    with pytest.raises(TooLarge):
        read(io.BytesIO(checkpoint), Budget(CheckpointLimits(free_bytes=size, bytes=size)))


@pytest.mark.parametrize("noticed", [False, True])
def test_another_is_started_where_the_one_they_are_forked_from_is_gone(checkpoint, noticed):
    read(io.BytesIO(checkpoint))
    before = forked()
    before.kill()
    if noticed:
        while before.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
    assert len(read(io.BytesIO(checkpoint))) == len(ROWS)


def test_readers_have_no_socket_but_their_own(checkpoint):
    def begun():
        file = io.BytesIO(checkpoint)
        lines = PROCESSES.lines(file, "a.parquet", Budget(), size=len(checkpoint))
        next(lines)
        return lines

    all_lines = [begun() for _ in range(3)]
    for child in forked().children():
        opened = [os.readlink(each) for each in Path(f"/proc/{child.pid}/fd").iterdir()]
        assert len([each for each in opened if each.startswith("socket:")]) == 1
    for lines in all_lines:
        lines.close()


def test_it_knows_nothing_of_the_service(checkpoint, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    PROCESSES.end()
    read(io.BytesIO(checkpoint))
    assert "AWS_SECRET_ACCESS_KEY" not in forked().environ()
    files = [Path(found.path).name for found in forked().open_files()]
    assert [name for name in files if not name.endswith((".so", ".py", ".pyc"))] == []


def test_nothing_of_the_folder_that_the_service_runs_in_is_imported(
    checkpoint, tmp_path, monkeypatch
):
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", *sys.path[1:]]))
    processes = ReaderProcesses()
    lines = processes.lines(io.BytesIO(checkpoint), "a", Budget(), size=len(checkpoint))
    assert sum(map(len, lines)) == len(ROWS)
    processes.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_stops_the_service_stops_no_reader(checkpoint, number):
    lines = PROCESSES.lines(io.BytesIO(checkpoint), "a.parquet", Budget(), size=len(checkpoint))
    found = len(next(lines))
    before = forked()
    for each in (before, *before.children()):
        each.send_signal(number)
    assert found + sum(map(len, lines)) == len(ROWS)
    assert forked() == before


def test_a_stopped_forking_process_holds_nobody_up(checkpoint):
    PROCESSES.end()
    # The one in its place takes seconds on a busy machine.
    processes = ReaderProcesses(started_s=20.0)
    read(io.BytesIO(checkpoint), processes=processes)
    stopped = forked()
    stopped.suspend()
    try:
        assert len(read(io.BytesIO(checkpoint), processes=processes)) == len(ROWS)
    finally:
        stopped.kill()
        processes.end()


def test_no_reader_is_no_broken_file(monkeypatch):
    monkeypatch.setattr(readers, "_MODULE", "no.such.module")
    with pytest.raises(StorageUnavailable, match="no process that reads checkpoints"):
        list(ReaderProcesses().lines(io.BytesIO(), "a.parquet", Budget(), size=0))

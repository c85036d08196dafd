"""What a reader says is believed in no more than its file is."""

import io
import socket
from collections.abc import Generator

import msgspec
import pytest

from tests.service.tables.delta_logs import DeltaLog, line
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.checkpoints.apart import readers
from tidegate_service.storage.checkpoints.apart.connection import Connection, Garbled
from tidegate_service.storage.checkpoints.apart.messages import (
    MOST_BYTES,
    Content,
    Ended,
    Ready,
    Rows,
    framed,
)
from tidegate_service.storage.checkpoints.apart.readers import PROCESSES, ReaderProcesses
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.limits import CheckpointLimits


@pytest.fixture
def sockets():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def result(steps: Generator[object, None, object]) -> object:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(
    "said",
    [
        (MOST_BYTES + 1).to_bytes(4, "big"),
        framed(Content(b"")),
        framed(Rows([b"{}"], -1)),
        (5000).to_bytes(4, "big") + b"\x91" * 5000,
        (9).to_bytes(4, "big") + msgspec.msgpack.encode(["Failed", "?"])[:-1] + b"\xff",
    ],
    ids=["long", "the service's", "negative", "deep", "no text"],
)
def test_what_none_says(sockets, said):
    ours, theirs = sockets
    theirs.sendall(said)
    with pytest.raises(Garbled):
        result(Connection(ours, silence_s=20.0).receive())


def test_who_says_it_slowly_is_silent(sockets):
    """However many pieces come: the message does not."""
    ours, theirs = sockets
    theirs.send((100_000).to_bytes(4, "big"))

    def trickled():
        for _ in Connection(ours, silence_s=0.2).receive():
            yield theirs.send(b"a")

    with pytest.raises(TimeoutError):
        result(trickled())


def scripted(monkeypatch: pytest.MonkeyPatch, *said: msgspec.Struct) -> ReaderProcesses:
    """Processes of which each says just this, and goes on."""
    processes = ReaderProcesses(silence_s=0.2, fate_s=0.1)
    ours, theirs = socket.socketpair()
    fate, told = socket.socketpair()

    def ready():
        for each in said:
            theirs.sendall(framed(each))
        return readers._Reader(ours, fate)
        yield

    monkeypatch.setattr(processes, "_ready", ready)
    # Held by the test: they end with it.
    processes.held = (theirs, told)
    return processes


def read(processes: ReaderProcesses, budget: Budget | None = None) -> list[bytes]:
    lines = processes.lines(io.BytesIO(), "a.parquet", budget or Budget(), size=0)
    return [found for some in lines for found in some]


@pytest.mark.parametrize(
    "said", [[Ready()], [Rows([b"{}"], 1)], [Rows([], 2), Rows([b"{}"], 0), Rows([b"{}"], 1)]]
)
def test_a_reader_that_says_it_is_of_the_file(monkeypatch, said):
    processes = scripted(monkeypatch, *said)
    with pytest.raises(UnreadableFile, match=r"'a\.parquet' .* says what none says"):
        read(processes)


def test_rows_take_of_the_budget_before_they_come(monkeypatch):
    processes = scripted(monkeypatch, Rows([], 5), Rows([b"{}"], 0), Rows([b"{}"], 0), Ended(1))
    budget = Budget(CheckpointLimits(free_bytes=10, bytes=10))
    assert read(processes, budget) == [b"{}", b"{}"]
    assert budget.left == 4


def test_silence_is_not_of_the_file(monkeypatch):
    """The machine may be busy."""
    with pytest.raises(StorageUnavailable):
        read(scripted(monkeypatch))


def test_a_row_that_is_too_long_as_a_line_is_refused(tmp_path):
    """It would be tried again, in vain, as one that is longer than a message was."""
    content = (
        DeltaLog(tmp_path)
        .checkpoint(0, [line(Txn(app_id="a" * size, version=1)) for size in (10, 30_000)])
        .read_bytes()
    )
    for line_bytes in (20_000, 10_000):
        budget = Budget(CheckpointLimits(line_bytes=line_bytes))
        lines = PROCESSES.lines(io.BytesIO(content), "a.parquet", budget, size=len(content))
        if line_bytes == 20_000:
            assert sum(map(len, lines)) == 2
        else:
            with pytest.raises(TooLarge, match=r"a row of it has 300\d\d bytes as a line of a log"):
                list(lines)

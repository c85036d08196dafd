"""Long reads have threads and turns of their own: whoever else reads or commits goes on."""

import asyncio
import threading
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.builders.by_x import PROTOCOL, add, metadata
from tests.builders.by_x import add as added
from tests.builders.proposals import proposal
from tests.service.tables.delta_logs import DeltaLog, line, write_rows
from tests.service.world import make_world
from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.files.log_file import LARGE_BYTES
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import CheckpointLimits, StorageLimits
from tidegate_service.storage.local.root import READERS, WRITERS, LocalRoot

pytestmark = pytest.mark.anyio


@dataclass
class Reader:
    """A `ReadFile` whose first step in a turn hangs until it is let go; `begun` are those in it,
    in order."""

    name: str
    begun: list[str]
    let_go: threading.Event

    def __call__(self, file: BinaryIO, size: int) -> Generator[None, None, bytes]:
        self.begun.append(self.name)
        assert self.let_go.wait(60)
        yield
        return self.name.encode()


@pytest.fixture
def root(tmp_path: Path) -> LocalRoot:
    for name, size in (("small", LARGE_BYTES), ("large", LARGE_BYTES + 1)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    (tmp_path / "t").mkdir()
    for name in ("small", "large"):
        (tmp_path / name).rename(tmp_path / "t" / name)
    return LocalRoot(tmp_path.as_uri())


@pytest.fixture
def let_go():
    """Set at the end, so that no thread is left hanging."""
    event = threading.Event()
    yield event
    event.set()


class Slow:
    """A large content whose pieces come when they are let go; `begun` notes each that is asked."""

    def __init__(self, begun: list[str], let_go: threading.Event) -> None:
        self._begun = begun
        self._let_go = let_go

    def __len__(self) -> int:
        return LARGE_BYTES + 1

    @property
    def sha256(self) -> str:
        return ""

    def pieces(self) -> Generator[bytes]:
        self._begun.append(threading.current_thread().name)
        assert self._let_go.wait(60)
        yield b"x"


class TestTurns:
    async def test_a_large_file_is_written_beside_small_ones(self, root, let_go):
        """So many that take their time leave the threads of small ones alone."""
        begun: list[str] = []
        writing = [
            asyncio.create_task(
                root.put_if_absent(
                    f"t/w{number}", Slow(begun, let_go), create_folders=False, who="evil"
                )
            )
            for number in range(8)
        ]
        while len(begun) < WRITERS:
            await asyncio.sleep(0)
        await root.put_if_absent("t/new", b"new", create_folders=False)
        assert len(begun) == WRITERS
        let_go.set()
        assert await asyncio.gather(*writing) == [PutResult.CREATED] * 8


async def test_a_file_of_too_many_pages_is_refused(index, tmp_path):
    """A header of some bytes costs as much as one of a page that is worth it."""
    few = StorageLimits(checkpoints=CheckpointLimits(pages=200))
    log = DeltaLog(tmp_path / "main" / "many")
    rows = [line(PROTOCOL), line(metadata()), *(line(add(f"a{n}")) for n in range(100))]
    write_rows(log.path(7, "checkpoint.parquet"), rows, data_page_size=1, write_batch_size=1)
    world = make_world(index, ObjectStorage(tmp_path.as_uri(), limits=few), tmp_path.as_uri())
    asked = RegisterTable(name="main.test.many", location=log.location)
    with pytest.raises(Refused, match="row group 0 has more than 200 pages") as refused:
        await register_table(world.context, asked)
    assert refused.value.code is Code.BROKEN_LOG
    world = make_world(index, ObjectStorage(tmp_path.as_uri()), tmp_path.as_uri())
    registered, _ = await register_table(world.context, asked)
    assert registered.num_files == 100


async def test_a_log_of_too_many_files_is_refused(index, tmp_path):
    log = DeltaLog(tmp_path / "main" / "crowded")
    log.commit(0, PROTOCOL, metadata(), add("a"))
    for number in range(30):
        (log.folder / f"{5:020}.checkpoint.{uuid.UUID(int=number)}.parquet").touch()
    storage = ObjectStorage(tmp_path.as_uri(), limits=StorageLimits(files=30))
    world = make_world(index, storage, tmp_path.as_uri())
    asked = RegisterTable(name="main.test.crowded", location=log.location)
    with pytest.raises(Refused, match=r"more than 30 files.*max_log_files") as refused:
        await register_table(world.context, asked)
    assert refused.value.code is Code.BROKEN_LOG
    one_more = ObjectStorage(tmp_path.as_uri(), limits=StorageLimits(files=31))
    enough = make_world(index, one_more, tmp_path.as_uri())
    registered, _ = await register_table(enough.context, asked)
    assert registered.num_files == 1
    # A reader's question is answered; what lies in the log is no difference of its own.
    found = await verify_table(world.context, registered.id)
    assert ["more than 30 files" in each.detail for each in found.differences] == [True]


async def test_commits_to_another_table_land_while_reads_hang(index, tmp_path, let_go):
    """Own files of a gigabyte, asked for again and again, are in nobody's way."""
    storage = ObjectStorage(tmp_path.as_uri())
    world = make_world(index, storage, tmp_path.as_uri())
    table = await world.create()
    (root,) = storage._roots
    assert isinstance(root, LocalRoot)
    with (world.log_folder(table) / "large").open("wb") as file:
        file.truncate(LARGE_BYTES + 1)
    path = f"{world.log_folder(table).relative_to(tmp_path)}/large"
    begun: list[str] = []
    asked = [
        asyncio.create_task(root.read(path, Reader("evil", begun, let_go), root.reading.of("evil")))
        for _ in range(20)
    ]
    while len(begun) < READERS:
        await asyncio.sleep(0)
    other = await world.create()
    for number in range(3):
        landed = await propose(world.context, other.id, proposal(added(f"a{number}")))
        assert isinstance(landed, Committed)
    assert len(begun) == READERS
    let_go.set()
    await asyncio.gather(*asked)

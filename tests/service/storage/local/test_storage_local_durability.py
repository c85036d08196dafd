"""A local commit is whole, durable and won by one writer, whatever dies on the way."""

import errno
import itertools
import json
import multiprocessing
import os
import resource
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Barrier as ThreadBarrier

import pytest

from tests.repository import ROOT
from tests.service.storage.stepping import content_of, inodes_below
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.local.files import LocalFiles

pytestmark = pytest.mark.anyio

LOG = "main/flights/_delta_log"
REPOSITORY = ROOT


@pytest.fixture
def files(tmp_path):
    return LocalFiles(tmp_path)


def temporaries(root: Path) -> list[Path]:
    return list(root.rglob("*.tmp"))


def commit(version: int) -> str:
    return f"{LOG}/{commit_name(version)}"


class TestRaces:
    def test_threads(self, files, tmp_path):
        racers, versions = 16, 20
        start = ThreadBarrier(racers)

        def race(racer: int) -> list[PutResult]:
            results = []
            for version in range(versions):
                start.wait()
                content = b"%d\n" % racer * 5000
                results.append(files.put_if_absent(commit(version), content, create_folders=True))
            return results

        with ThreadPoolExecutor(racers) as pool:
            results = list(pool.map(race, range(racers)))

        for version in range(versions):
            winners = [r for r in range(racers) if results[r][version] is PutResult.CREATED]
            assert len(winners) == 1
            assert (tmp_path / commit(version)).read_bytes() == b"%d\n" % winners[0] * 5000
        assert temporaries(tmp_path) == []

    def test_processes(self, tmp_path):
        racers, versions = 16, 20
        context = multiprocessing.get_context("spawn")
        start = context.Barrier(racers)
        reports = tmp_path / "reports"
        reports.mkdir()
        processes = [
            context.Process(target=put_versions, args=(tmp_path, racer, versions, start))
            for racer in range(racers)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * racers

        won = [json.loads((reports / str(racer)).read_text()) for racer in range(racers)]
        assert sorted(itertools.chain(*won)) == list(range(versions))
        for racer in range(racers):
            for version in won[racer]:
                assert (tmp_path / commit(version)).read_bytes() == b"%d\n" % racer * 5000


def put_versions(root: Path, racer: int, versions: int, start: Barrier) -> None:
    files, won = LocalFiles(root), []
    for version in range(versions):
        start.wait(timeout=60)
        content = b"%d\n" % racer * 5000
        result = files.put_if_absent(commit(version), content, create_folders=True)
        if result is PutResult.CREATED:
            won.append(version)
    (root / "reports" / str(racer)).write_text(json.dumps(won))


class TestKilledWriters:
    @pytest.fixture
    def deaths(self, tmp_path):
        """One writer killed before each of its lines, the last one not killed."""
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.service.process.killed.killed_writer",
                tmp_path,
                commit(0),
                CONTENT,
            ],
            cwd=REPOSITORY,
            check=True,
            capture_output=True,
            text=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    async def test_the_commit_is_there_whole_or_not_at_all(self, deaths):
        found = [await read(death["root"]) for death in deaths]

        landed = found.index(CONTENT.encode())
        assert found == [None] * landed + [CONTENT.encode()] * (len(deaths) - landed)
        assert landed > 10
        assert deaths[-1]["line"] is None

    async def test_what_a_dead_writer_leaves_is_ignored(self, deaths):
        stale = [death["root"] for death in deaths if temporaries(Path(death["root"]))]
        landed = [await read(root) is not None for root in stale]

        assert [await log_under(root).holds_anything() for root in stale] == landed
        assert set(landed) == {False, True}

    async def test_the_next_writer_goes_on(self, deaths):
        for death in deaths:
            log = log_under(death["root"])
            landed = await log.read(0) is not None
            result = await log.put_if_absent(0, b"survivor\n")
            assert result is (PutResult.EXISTS if landed else PutResult.CREATED)
            assert await log.read(0) == (CONTENT.encode() if landed else b"survivor\n")


CONTENT = '{"commitInfo":{}}\n' * 5000


def log_under(root: str):
    return ObjectStorage(f"file://{root}").log(f"file://{root}/main/flights")


async def read(root: str) -> bytes | None:
    return await log_under(root).read(0)


class TestSyncing:
    @pytest.fixture
    def events(self, tmp_path, monkeypatch):
        """What of this test is synced and linked, in order, as inode numbers and the word "link".
        What other tests have left in the background may sync and link, too."""
        events: list[int | str] = []
        sync, link = os.fsync, os.link

        def recorded_sync(descriptor):
            sync(descriptor)
            if (inode := os.fstat(descriptor).st_ino) in inodes_below(tmp_path):
                events.append(inode)

        def recorded_link(*args, **options):
            link(*args, **options)
            if os.fstat(options["dst_dir_fd"]).st_ino in inodes_below(tmp_path):
                events.append("link")

        monkeypatch.setattr(os, "fsync", recorded_sync)
        monkeypatch.setattr(os, "link", recorded_link)
        return events

    def test_content_before_the_name_and_the_name_before_the_answer(self, files, tmp_path, events):
        files.put_if_absent(commit(0), b"zero\n", create_folders=True)
        events.clear()

        files.put_if_absent(commit(1), b"one\n", create_folders=False)

        file, folder = (tmp_path / commit(1)).stat().st_ino, (tmp_path / LOG).stat().st_ino
        assert events == [file, "link", folder]

    def test_new_folders_are_synced_into_their_parents(self, files, tmp_path, events):
        files.put_if_absent(commit(0), b"zero\n", create_folders=True)

        parents = [tmp_path, tmp_path / "main", tmp_path / "main" / "flights"]
        assert events[:3] == [parent.stat().st_ino for parent in parents]

    def test_a_name_that_another_made_is_synced_before_it_is_reported(
        self, files, tmp_path, events
    ):
        files.put_if_absent(commit(0), b"zero\n", create_folders=True)
        file, folder = (tmp_path / commit(0)).stat().st_ino, (tmp_path / LOG).stat().st_ino
        events.clear()

        assert files.put_if_absent(commit(0), b"2", create_folders=False) is PutResult.EXISTS
        assert events[-1] == folder
        events.clear()

        assert content_of(files, commit(0)) == b"zero\n"
        assert events == [file, folder]


class TestFaults:
    """`StorageUnavailable` where the commit was certainly not written, else `StorageUnknown`."""

    @pytest.fixture
    def put(self, files):
        files.put_if_absent(commit(0), b"zero\n", create_folders=True)
        return lambda: files.put_if_absent(commit(1), b"x" * 100_000, create_folders=False)

    def test_a_file_that_cannot_be_written(self, put, files, tmp_path):
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        try:
            with pytest.raises(StorageUnavailable):
                put()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

        assert content_of(files, commit(1)) is None
        assert temporaries(tmp_path) == []

    def test_a_file_that_cannot_be_synced(self, put, files, tmp_path, monkeypatch):
        fail_sync_of(monkeypatch, stat.S_ISREG)
        with pytest.raises(StorageUnavailable):
            put()
        monkeypatch.undo()

        assert content_of(files, commit(1)) is None
        assert temporaries(tmp_path) == []

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EXDEV, errno.EMLINK])
    def test_a_name_that_was_refused(self, put, tmp_path, monkeypatch, number):
        def refuse(*_args, **_options):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", refuse)

        with pytest.raises(StorageUnavailable):
            put()
        assert temporaries(tmp_path) == []

    @pytest.mark.parametrize("number", [errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EINTR])
    @pytest.mark.parametrize("applied", [True, False])
    def test_a_name_without_an_answer(self, put, files, monkeypatch, number, applied):
        link = os.link

        def lose_the_answer(*args, **options):
            if applied:
                link(*args, **options)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", lose_the_answer)
        with pytest.raises(StorageUnknown):
            put()
        monkeypatch.undo()

        assert (content_of(files, commit(1)) is not None) is applied
        assert put() is (PutResult.EXISTS if applied else PutResult.CREATED)

    def test_a_name_that_cannot_be_synced(self, put, monkeypatch):
        fail_sync_of(monkeypatch, stat.S_ISDIR)
        with pytest.raises(StorageUnknown):
            put()
        # The second one finds the name, so this call certainly wrote nothing.
        with pytest.raises(StorageUnavailable):
            put()
        monkeypatch.undo()

        assert put() is PutResult.EXISTS


def fail_sync_of(monkeypatch, kind) -> None:
    sync = os.fsync

    def failing_sync(descriptor):
        if kind(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing_sync)

"""Many commits of one table put into a local log at once: whole, in order, durable together."""

import contextlib
import errno
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.storage.stepping import content_of, inodes_below
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.local import files as local_files
from tidegate_service.storage.local.files import STAGED_AT_ONCE, LocalFiles

LOG = "main/flights/_delta_log"
COUNT = 2 * STAGED_AT_ONCE + 3

Put = Callable[[], list[PutResult]]


@pytest.fixture(params=[math.inf, -1.0], ids=["quick", "slow"])
def files(request, tmp_path: Path) -> LocalFiles:
    """On a disk that answers at once, and on one that never does."""
    return LocalFiles(tmp_path, limits=StorageLimits(slow_s=request.param))


@pytest.fixture
def put(files: LocalFiles) -> Put:
    """Puts versions 0 to `COUNT - 1`."""
    contents = [(commit_name(version), b"%d\n" % version) for version in range(COUNT)]
    return lambda: files.put_in_order(LOG, contents, create_folders=True, within_s=60.0)


def there(root: Path) -> list[str]:
    return sorted(path.name for path in (root / LOG).iterdir())


def temporaries(root: Path) -> list[Path]:
    return list(root.rglob("*.tmp"))


def failing(monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: int) -> None:
    """Have a call of `os` fail once, at its n-th use by this thread: a service of other tests may
    write meanwhile."""
    real, uses, own = getattr(os, call), 0, threading.get_ident()

    def counted(*args: object, **options: object) -> object:
        nonlocal uses
        uses += threading.get_ident() == own
        if uses == number and threading.get_ident() == own:
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    monkeypatch.setattr(os, call, counted)


def test_every_content_is_durable_before_its_name_and_all_names_before_the_answer(
    put, files, tmp_path, monkeypatch
):
    events: list[tuple[str, str | int]] = []
    sync, link = os.fsync, os.link

    def recorded_sync(descriptor: int) -> None:
        sync(descriptor)
        # What other tests have left in the background may sync and put files, too.
        if (inode := os.fstat(descriptor).st_ino) in inodes_below(tmp_path):
            events.append(("sync", inode))

    def recorded_link(source: str, name: str, **options: int) -> None:
        link(source, name, **options)
        if os.fstat(options["dst_dir_fd"]).st_ino == (tmp_path / LOG).stat().st_ino:
            events.append(("link", name))

    monkeypatch.setattr(os, "fsync", recorded_sync)
    monkeypatch.setattr(os, "link", recorded_link)
    assert put() == [PutResult.CREATED] * COUNT

    names = [commit_name(version) for version in range(COUNT)]
    assert [name for what, name in events if what == "link"] == names
    for name in names:
        content = ("sync", (tmp_path / LOG / name).stat().st_ino)
        assert events.index(content) < events.index(("link", name))
    folder = (tmp_path / LOG).stat().st_ino
    assert events[-1] == ("sync", folder)
    assert events.count(("sync", folder)) == 1
    assert temporaries(tmp_path) == []


def open_below(root: Path) -> int:
    """How many files below a folder this process has open, folders left out.

    Others of the process come and go meanwhile: what earlier tests left is collected at any time.
    """
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = Path(os.readlink(f"/proc/self/fd/{name}"))
            count += target.is_relative_to(root) and not target.is_dir()
    return count


@pytest.mark.parametrize("place", [2, STAGED_AT_ONCE, STAGED_AT_ONCE + 5])
@pytest.mark.parametrize("fault", [("write", errno.ENOSPC), ("open", errno.EMFILE)])
def test_one_that_cannot_be_written_ends_it_behind_those_before(
    put, tmp_path, monkeypatch, fault, place
):
    (tmp_path / LOG).mkdir(parents=True)
    call, code = fault
    # The folders on the way are opened first.
    failing(monkeypatch, call, place + (4 if call == "open" else 0), code)
    assert put() == [PutResult.CREATED] * (place - 1)
    assert there(tmp_path) == [commit_name(version) for version in range(place - 1)]
    assert temporaries(tmp_path) == []
    assert open_below(tmp_path) == 0


@pytest.mark.parametrize("place", [1, 2, STAGED_AT_ONCE, STAGED_AT_ONCE + 5])
def test_one_that_cannot_be_synced_ends_it_behind_those_before(put, tmp_path, monkeypatch, place):
    (tmp_path / LOG).mkdir(parents=True)
    written: dict[int, int] = {}
    sync, write = os.fsync, os.write

    def counting(descriptor: int, content: bytes) -> int:
        if (inode := os.fstat(descriptor).st_ino) in inodes_below(tmp_path):
            written[inode] = len(written) + 1
        return write(descriptor, content)

    def failing_sync(descriptor: int) -> None:
        if written.get(os.fstat(descriptor).st_ino) == place:
            raise OSError(errno.EIO, "an I/O error")
        sync(descriptor)

    monkeypatch.setattr(os, "write", counting)
    monkeypatch.setattr(os, "fsync", failing_sync)
    if place == 1:
        with pytest.raises(StorageUnavailable):
            put()
    else:
        assert put() == [PutResult.CREATED] * (place - 1)
    assert there(tmp_path) == [commit_name(version) for version in range(place - 1)]
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("place", [0, 5, STAGED_AT_ONCE - 1, STAGED_AT_ONCE + 5])
def test_a_name_that_is_taken_ends_it_and_is_left_alone(put, files, tmp_path, place):
    taken = f"{LOG}/{commit_name(place)}"
    files.put_if_absent(taken, b"theirs\n", create_folders=True)
    assert put() == [*[PutResult.CREATED] * place, PutResult.EXISTS]
    assert there(tmp_path) == [commit_name(version) for version in range(place + 1)]
    assert content_of(files, taken) == b"theirs\n"
    assert temporaries(tmp_path) == []


def test_a_disk_that_is_slow_is_not_waited_for_beyond_the_time(files, tmp_path, monkeypatch):
    """None is synced when the time is over; those that are, are named."""
    contents = [(commit_name(version), b"%d\n" % version) for version in range(COUNT)]
    time = iter(range(10_000))
    monkeypatch.setattr(local_files.time, "monotonic", lambda: float(next(time)))
    results = files.put_in_order(LOG, contents, create_folders=True, within_s=5.5)
    assert results == [PutResult.CREATED] * len(results)
    assert 1 <= len(results) <= 6
    assert there(tmp_path) == [commit_name(version) for version in range(len(results))]
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("advice", ["missing", "refused"])
def test_a_platform_that_takes_no_advice_writes_as_well(put, tmp_path, monkeypatch, advice):
    if advice == "missing":
        monkeypatch.delattr(os, "posix_fadvise")
    else:

        def refused(*_: object) -> None:
            raise OSError(errno.EINVAL, "not for this file system")

        monkeypatch.setattr(os, "posix_fadvise", refused)
    assert put() == [PutResult.CREATED] * COUNT
    assert there(tmp_path) == [commit_name(version) for version in range(COUNT)]


@pytest.mark.parametrize("place", [2, STAGED_AT_ONCE, STAGED_AT_ONCE + 5])
def test_one_that_cannot_be_named_ends_it_behind_those_before(put, tmp_path, monkeypatch, place):
    failing(monkeypatch, "link", place, errno.EIO)
    assert put() == [PutResult.CREATED] * (place - 1)
    assert there(tmp_path) == [commit_name(version) for version in range(place - 1)]
    assert temporaries(tmp_path) == []
    assert put()[0] is PutResult.EXISTS


@pytest.mark.parametrize(
    ("code", "error"), [(errno.EIO, StorageUnknown), (errno.ENOSPC, StorageUnavailable)]
)
def test_where_the_first_cannot_be_named_nothing_is_known(put, tmp_path, monkeypatch, code, error):
    failing(monkeypatch, "link", 1, code)
    with pytest.raises(error):
        put()
    assert there(tmp_path) == []
    assert temporaries(tmp_path) == []


def test_a_folder_that_cannot_be_synced_leaves_all_unknown(put, tmp_path, monkeypatch):
    (tmp_path / LOG).mkdir(parents=True)
    folder, sync = (tmp_path / LOG).stat().st_ino, os.fsync

    def failing_sync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == folder:
            raise OSError(errno.EIO, "an I/O error")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing_sync)
    with pytest.raises(StorageUnknown):
        put()

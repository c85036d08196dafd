"""Many commits of one table put into a local log at once: whole, in order, durable together."""

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate_protocol.log_files import commit_name
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports import PutResult
from tidegate_service.storage.local_files import STAGED_AT_ONCE, LocalFiles

LOG = "main/flights/_delta_log"
COUNT = 2 * STAGED_AT_ONCE + 3

Put = Callable[[], list[PutResult]]


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path)


@pytest.fixture
def put(files: LocalFiles) -> Iterator[Put]:
    """Puts versions 0 to `COUNT - 1`."""
    contents = [(commit_name(version), b"%d\n" % version) for version in range(COUNT)]
    with ThreadPoolExecutor(STAGED_AT_ONCE) as writers:
        yield lambda: files.put_in_order(
            LOG, contents, create_folders=True, within_s=60.0, writers=writers
        )


def there(root: Path) -> list[str]:
    return sorted(path.name for path in (root / LOG).iterdir())


def temporaries(root: Path) -> list[Path]:
    return list(root.rglob("*.tmp"))


def failing(monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: int) -> None:
    """Have a call of `os` fail once, at its n-th use on a commit."""
    real, uses = getattr(os, call), 0

    def counted(*args: object, **options: object) -> object:
        nonlocal uses
        uses += 1
        if uses == number:
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
        events.append(("sync", os.fstat(descriptor).st_ino))

    def recorded_link(source: str, name: str, **options: int) -> None:
        link(source, name, **options)
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

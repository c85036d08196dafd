"""A full disk: 503 with the right code, nothing torn, nothing lost, and on it goes with room.

The disks are small file systems in memory, which root can mount; elsewhere these tests are
skipped, saying so. `test_storage_local_durability.py` has a limit of file sizes that anybody can
set, and `make chaos` fills both disks under load.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.chaos.disks import NoDisks, fill, free, small_disk
from tests.service.storage.stepping import content_of
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate
from tidegate_service.storage.local.files import LocalFiles

PLAIN, MANAGED = "main.air.plain", "main.air.managed"
PATIENCE_S = 30.0


@pytest.fixture
def mounted(tmp_path) -> Iterator[Callable[..., Path]]:
    """Mounts small disks under the test's folder."""
    with ExitStack() as stack:

        def mount(name: str, **size: int) -> Path:
            try:
                return stack.enter_context(small_disk(tmp_path / name, **size))
            except NoDisks as why:
                pytest.skip(str(why))

        yield mount


def propose(api: httpx.Client, table: str, identity: str, *, padding: int = 0) -> httpx.Response:
    body = proposal(add(f"month=5/{identity}", tags={"x": "x" * padding}), transaction_id=identity)
    return api.post(f"/tables/{table}/commits", json=body)


def eventually(answer: Callable[[], httpx.Response]) -> httpx.Response:
    """The first answer that is not 503; each question is a request, so this does not spin."""
    until = time.monotonic() + PATIENCE_S
    while (found := answer()).status_code == 503:
        assert time.monotonic() < until, found.text
    return found


def told(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


class TestFiles:
    def test_no_room_for_the_name(self, mounted):
        """The temporary file takes the last name; link(2) finds none left."""
        disk = mounted("disk", mib=2, files=64)
        files = LocalFiles(disk)
        files.put_if_absent("t/_delta_log/0.json", b"zero\n", create_folders=True)
        names = []
        while True:
            name = disk / f"name{len(names)}"
            try:
                name.touch()
            except OSError:
                break
            names.append(name)

        for room in (0, 1):
            for name in names[:room]:
                name.unlink()
            with pytest.raises(StorageUnavailable):
                files.put_if_absent("t/_delta_log/1.json", b"one\n", create_folders=False)
            assert content_of(files, "t/_delta_log/1.json") is None
            assert list(disk.rglob("*.tmp")) == []

        names[1].unlink()
        put = files.put_if_absent("t/_delta_log/1.json", b"one\n", create_folders=False)
        assert put is PutResult.CREATED


def test_the_disk_of_the_tables(mounted, start_service):
    """Plain tables wait for room; catalog-managed ones go on, and are published afterwards."""
    disk = mounted("tables", mib=16)
    service = start_service(data_dir=disk)
    with httpx.Client(base_url=f"{service.url}/api/v1", timeout=40.0) as api:
        for table in (PLAIN, MANAGED):
            body = table_body(table, catalog_managed=table is MANAGED)
            api.post("/tables", json=body).raise_for_status()
            assert propose(api, table, "before").status_code == 201
        fill(disk)

        for number in range(3):
            refused = propose(api, PLAIN, f"full-{number}", padding=8192)
            assert told(refused) == (503, "storage-unavailable")
            assert propose(api, MANAGED, f"full-{number}", padding=8192).status_code == 201

        log = [path.name for path in (disk / "warehouse").rglob("*.json")]
        assert not any(name.startswith("00000000000000000002") for name in log)
        free(disk)
        for number in range(3):
            landed = eventually(lambda n=number: propose(api, PLAIN, f"full-{n}", padding=8192))
            assert landed.status_code in (200, 201)
        until = time.monotonic() + PATIENCE_S
        while api.get(f"/tables/{MANAGED}").json()["published_version"] < 4:
            assert time.monotonic() < until, "what waited was not published"
    logs = sorted(disk.rglob("_delta_log/*.json"))
    assert len(logs) == 2 * 5
    for path in logs:
        assert all(json.loads(line) for line in path.read_text().splitlines())
    assert list(disk.rglob("*.tmp")) == []


def test_the_disk_of_postgres(mounted, start_service):
    disk = mounted("index/postgres", mib=512)
    with EmbeddedPostgres(disk.parent) as postgres:
        migrate.upgrade(postgres.url)
        service = start_service(database_url=postgres.url)
        with httpx.Client(base_url=f"{service.url}/api/v1", timeout=40.0) as api:
            for table in (PLAIN, MANAGED):
                body = table_body(table, catalog_managed=table is MANAGED)
                api.post("/tables", json=body).raise_for_status()
            fill(disk)
            sent: dict[tuple[str, str], int] = {}
            until = time.monotonic() + PATIENCE_S
            while not all(
                (table, 503) in {(t, s) for (t, _), s in sent.items()} for table in (PLAIN, MANAGED)
            ):
                assert time.monotonic() < until, "Postgres did not run out of room"
                for table in (PLAIN, MANAGED):
                    identity = f"full-{len(sent)}"
                    answer = propose(api, table, identity, padding=100_000)
                    sent[table, identity] = answer.status_code
                    if answer.status_code != 201:
                        assert told(answer) in (
                            (503, "index-unavailable"),
                            (503, "commit-state-unknown"),
                        )
                fill(disk)
            free(disk)
            if not postgres.running:
                # It ends by itself where its own log has no room.
                postgres.start()
            for (table, identity), status in sent.items():
                again = eventually(lambda t=table, i=identity: propose(api, t, i, padding=100_000))
                assert again.status_code in ((200,) if status == 201 else (200, 201))
            for table in (PLAIN, MANAGED):
                found = api.get(f"/tables/{table}").json()["latest_version"]
                assert found == sum(t == table for t, _ in sent)

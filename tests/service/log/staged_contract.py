"""What every implementation of the `Log` port does with files of `_staged_commits`; a part of
`LogContract`, with its fixtures."""

from collections.abc import Callable

from tidegate_service.core.log.files.log_file import OversizedFile
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.storage import Log, Storage

Plant = Callable[[str, str, bytes], None]
STAGED = "00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"


async def staged(log: Log, versions: range) -> list[LogEntry]:
    return [entry async for batch in log.staged(versions) for entry in batch]


class StagedContract:
    async def test_a_staged_commit_is_read_by_its_name(
        self, storage: Storage, location, plant: Plant
    ):
        log, name = storage.log(location), STAGED
        assert await log.read_staged(name, most_bytes=7) is None
        plant(location, f"_staged_commits/{name}", b"staged\n")
        for most_bytes in (7, 1024**3):
            assert await log.read_staged(name, most_bytes=most_bytes) == b"staged\n"
        longer = await log.read_staged(name, most_bytes=6)
        assert isinstance(longer, OversizedFile)
        assert len(longer) == 7
        assert await log.read(1) is None

    async def test_staged_commits_are_listed_by_their_versions(
        self, storage: Storage, location, plant: Plant
    ):
        log, uuid = storage.log(location), STAGED.split(".", 1)[1]
        assert await staged(log, range(10)) == []
        names = [f"{version:020d}.{uuid}" for version in (0, 1, 2, 10, 11)]
        other = f"{1:020d}.00000000-0000-4000-8000-000000000000.json"
        for name in (*names, other, f"{1:020d}.json", "notes.txt"):
            plant(location, f"_staged_commits/{name}", name.encode())
        plant(location, f"{2:020d}.json", b"two\n")
        found = await staged(log, range(1, 11))
        assert [entry.name for entry in found] == [other, *names[1:4]]
        assert [entry.size for entry in found] == [len(entry.name) for entry in found]
        assert [entry.name for entry in await staged(log, range(11, 12))] == [names[4]]
        assert await staged(log, range(12, 99)) == []

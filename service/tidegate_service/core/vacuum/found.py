"""What was found, on the disk: the files that may go, and of those the ones that go."""

from collections.abc import Sequence

from tidegate_service.core.ports.store.data_files import DataFile
from tidegate_service.core.sharing.spools import Spool
from tidegate_service.core.vacuum.orphans import OtherNames


class FoundFiles:
    """Files in the order in which they were added, with their number and bytes. Blocking, but for
    `add`, which is of few."""

    def __init__(self, *, who: str | None) -> None:
        self._spool = Spool(who=who)
        self.count = 0
        self.size = 0

    def add(self, files: Sequence[DataFile]) -> None:
        self._spool.add([f"{file.size} {file.modified_ms} {file.path}" for file in files])
        self.count += len(files)
        self.size += sum(file.size for file in files)

    def begin(self) -> None:
        """From here on `next` begins anew."""
        self._lines = self._spool.lines()

    def next(self, most: int) -> list[DataFile]:
        """The next files, empty at the end."""
        found = []
        for line in self._lines:
            size, modified_ms, path = line.split(" ", 2)
            found.append(DataFile(path=path, size=int(size), modified_ms=int(modified_ms)))
            if len(found) == most:
                break
        return found

    def close(self) -> None:
        self._spool.close()


class Unnamed:
    """Leaves out of files in byte order those that have another name of `OtherNames`.
    `names_at_once` of these are passed over in one step."""

    def __init__(self, others: OtherNames, *, names_at_once: int = 1_000) -> None:
        self._at_once = names_at_once
        self._names = others.spool.lines()
        self._share = others.share
        # Before the first one.
        self._at: str | None = ""

    async def of(self, files: Sequence[DataFile]) -> list[DataFile]:
        left: list[DataFile] = []
        looked_at = 0
        while looked_at < len(files):
            found, count = await self._share.run(self._of_some, files[looked_at:])
            left += found
            looked_at += count
        return left

    def _of_some(self, files: Sequence[DataFile]) -> tuple[list[DataFile], int]:
        """Those of the first files, and of how many: of few where many names lie between them.
        Blocking."""
        left: list[DataFile] = []
        passed = 0
        for place, file in enumerate(files):
            while self._at is not None and self._at < file.path:
                if passed == self._at_once:
                    return left, place
                passed += 1
                self._at = next(self._names, None)
            if file.path != self._at:
                left.append(file)
        return left, len(files)

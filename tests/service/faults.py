"""Faults between the commit path and the real store: answers lost, writes refused.

These wrap the real storage and pass every call on; a fault changes only what the caller learns
of it, or keeps one write from being made. Each fault is used once, in order.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports import Log, PutResult, Storage


class Fault(Enum):
    """What happens to the next PUT of a commit file."""

    NONE = "passes through"
    ANSWER_LOST = "written, but the caller is not told"
    LOST = "not written, and the caller is not told"
    REFUSED = "not written, and the caller is told so"


class FaultyStorage:
    """A `Storage` whose PUTs meet the scripted faults, then none."""

    def __init__(self, storage: Storage, faults: Iterable[Fault] = ()) -> None:
        self._storage = storage
        self.faults = deque(faults)

    def log(self, location: str) -> Log:
        return FaultyLog(self._storage.log(location), self.faults)

    async def probe(self) -> None:
        if self.faults and self.faults[0] is Fault.REFUSED:
            raise StorageUnavailable("the store is down")
        await self._storage.probe()


class FaultyLog:
    def __init__(self, log: Log, faults: deque[Fault]) -> None:
        self._log = log
        self._faults = faults

    async def put_if_absent(self, version: int, content: bytes) -> PutResult:
        fault = self._faults.popleft() if self._faults else Fault.NONE
        if fault is Fault.REFUSED:
            raise StorageUnavailable("the store is down")
        if fault is Fault.LOST:
            raise StorageUnknown("the request was lost")
        result = await self._log.put_if_absent(version, content)
        if fault is Fault.ANSWER_LOST:
            raise StorageUnknown("the answer was lost")
        return result

    async def read(self, version: int) -> bytes | None:
        return await self._log.read(version)

    async def holds_anything(self) -> bool:
        return await self._log.holds_anything()

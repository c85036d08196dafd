"""What a machine does to an instance: end it at a step, lose or hold back what it sends.

Each thing scripted happens once. An instance that dies is one whose request ends in `Died`: its
transaction is rolled back, as Postgres does for a connection that went away.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tidegate_protocol.log.content import Content
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Log, Storage
from tidegate_service.storage.roots import one_by_one


class Died(BaseException):
    """The instance ended here. Nothing of the service catches it, and nobody gets an answer."""


class Put(Enum):
    """What happens to the next PUT of a commit file."""

    REFUSED = "not written, and the caller is told so"
    LOST = "not written, and the caller is not told"
    ANSWER_LOST = "written, but the caller is not told"
    DIED = "written, and the instance ends before it is told"
    HELD = "on its way, and the instance ends; it arrives later or never"


@dataclass(frozen=True, slots=True)
class Held:
    """A PUT that has not arrived yet, at a table's location."""

    location: str
    log: Log
    version: int
    content: bytes

    async def arrives(self) -> PutResult:
        return await self.log.put_if_absent(self.version, self.content)


class Script:
    """What one instance meets next; implements `core.observe.faults.FaultPoints`."""

    def __init__(self) -> None:
        self.put: Put | None = None
        self.held: list[Held] = []
        # So many of what it waits for go by as ever before.
        self.passes = 0
        self._points: dict[tuple[Step, Side], Callable[[], None]] = {}

    def at(self, step: Step, side: Side, deed: Callable[[], None]) -> None:
        """Do this at that point."""
        self._points[step, side] = deed

    def clear(self) -> None:
        """Forget what was not met."""
        self.put = None
        self.passes = 0
        self._points.clear()

    async def reached(self, step: Step, side: Side) -> None:
        if (step, side) in self._points and self._is_due():
            self._points.pop((step, side))()

    def next_put(self) -> Put | None:
        """What happens to the PUT that is made now."""
        if self.put is None or not self._is_due():
            return None
        put, self.put = self.put, None
        return put

    def _is_due(self) -> bool:
        if self.passes:
            self.passes -= 1
            return False
        return True


def die() -> None:
    raise Died


class ScriptedStorage:
    """A `Storage` that passes every call on, but for what the script says of PUTs."""

    def __init__(self, storage: Storage, script: Script) -> None:
        self._storage = storage
        self._script = script

    def log(self, location: str, *, who: str | None = None) -> "ScriptedLog":
        return ScriptedLog(location, self._storage.log(location, who=who), self._script)

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)


class ScriptedLog:
    def __init__(self, location: str, log: Log, script: Script) -> None:
        self._location = location
        self._log = log
        self._script = script

    async def put_if_absent(self, version: int, content: bytes) -> PutResult:
        fault = self._script.next_put()
        match fault:
            case Put.REFUSED:
                raise StorageUnavailable("the store is down")
            case Put.LOST:
                raise StorageUnknown("the request was lost")
            case Put.HELD:
                self._script.held.append(Held(self._location, self._log, version, content))
                raise Died
        result = await self._log.put_if_absent(version, content)
        match fault:
            case Put.ANSWER_LOST:
                raise StorageUnknown("the answer was lost")
            case Put.DIED:
                raise Died
        return result

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        return await one_by_one(self.put_if_absent, commits, within_s=within_s)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

"""Places for sections, shared among principals: each section uses a connection."""

import asyncio
from dataclasses import dataclass

from tidegate_service.core.sharing.shares import most_of_one
from tidegate_service.core.sharing.turns import Turns


@dataclass(slots=True)
class _Own:
    places: asyncio.Semaphore
    # How many wait for a place or have one. At 0 the entry is dropped.
    present: int = 0


class Places:
    """`at_once` places, of one event loop. Waiting principals take turns, and each has at most
    `most_of_one` of all places. Callers without a principal (None) are not told apart, and may have
    all."""

    def __init__(self, at_once: int) -> None:
        self._of_one = most_of_one(at_once)
        self._turns = Turns(at_once)
        self._own: dict[str, _Own] = {}

    @property
    def principals(self) -> int:
        """How many principals have a place or wait for one."""
        return len(self._own)

    async def take(self, who: str | None) -> None:
        """Wait for a place, and keep it until `give_back`. A cancelled wait takes no place."""
        if who is None:
            await self._turns.take("")
            return
        own = self._own.setdefault(who, _Own(asyncio.Semaphore(self._of_one)))
        own.present += 1
        try:
            await own.places.acquire()
            try:
                await self._turns.take(who)
            except BaseException:
                own.places.release()
                raise
        except BaseException:
            self._leave(who, own)
            raise

    def give_back(self, who: str | None) -> None:
        """Give back a place that was taken."""
        self._turns.end()
        if who is not None:
            own = self._own[who]
            own.places.release()
            self._leave(who, own)

    def _leave(self, who: str, own: _Own) -> None:
        own.present -= 1
        if not own.present:
            del self._own[who]

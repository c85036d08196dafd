"""Places for sections, of which each holds a connection, so that no principal has all of them."""

import asyncio
from dataclasses import dataclass

from tidegate_service.core.sharing.shares import most_of_one
from tidegate_service.core.sharing.turns import Turns


@dataclass(slots=True)
class _Own:
    places: asyncio.Semaphore
    # Those who wait and those who have one; nobody: it is forgotten.
    present: int = 0


class Places:
    """`at_once` of them. Of those who wait, each principal has the next one in its order, up to
    `most_of_one` of all; nobody (None) is told from nobody, and may have all. Of one event loop."""

    def __init__(self, at_once: int) -> None:
        self._of_one = most_of_one(at_once)
        self._turns = Turns(at_once)
        self._own: dict[str, _Own] = {}

    @property
    def principals(self) -> int:
        """How many have a place or wait for one."""
        return len(self._own)

    async def take(self, who: str | None) -> None:
        """Wait for a place, which is had until `give_back`. Whoever is cancelled has none."""
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
        """What was taken."""
        self._turns.end()
        if who is not None:
            own = self._own[who]
            own.places.release()
            self._leave(who, own)

    def _leave(self, who: str, own: _Own) -> None:
        own.present -= 1
        if not own.present:
            del self._own[who]

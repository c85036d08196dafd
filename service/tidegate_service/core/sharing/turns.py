"""Turns at something scarce, principal by principal."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidegate_service.core.sharing.shares import most_of_one

Turn = asyncio.Future[None]


class Turns:
    """`at_once` have a turn at a time. Of those who wait, each principal has the next one in its
    order, so one that asks for much waits behind itself. Of one event loop."""

    def __init__(self, at_once: int) -> None:
        self._at_once = self._free = at_once
        self._waiting: dict[str, deque[Turn]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nobody has a turn."""
        return self._free == self._at_once

    async def take(self, principal: str) -> None:
        """Wait for a turn, which lasts until `end`. Whoever is cancelled has none."""
        if self._free:
            self._free -= 1
            return
        turn: Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(principal, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It was given, and not taken any more.
                self.end()
            raise

    def end(self) -> None:
        """One turn is over; the next one begins."""
        while self._waiting:
            principal = next(iter(self._waiting))
            line = self._waiting.pop(principal)
            turn = line.popleft()
            if line:
                self._waiting[principal] = line
            # Whoever left is passed over here, since one may have left that does not know yet.
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._free += 1

    @asynccontextmanager
    async def turn(self, principal: str) -> AsyncIterator[None]:
        """`take`, and `end` afterwards."""
        await self.take(principal)
        try:
            yield
        finally:
            self.end()


class Passes:
    """`at_once` begin in each pass of the event loop, one of each principal in turn: what one asks
    for at once is worked on a little at a time, and others' work comes between. Who has begun is
    not waited for: its work on the loop is over with the pass, or is waited for elsewhere."""

    def __init__(self, at_once: int) -> None:
        self._turns = Turns(at_once)

    async def begin(self, principal: str) -> None:
        """Wait for a turn. Whoever is cancelled has none."""
        await self._turns.take(principal)
        asyncio.get_running_loop().call_soon(self._turns.end)


class OwnTurns:
    """`at_once` of each principal have a turn at a time; others of it wait for them, and nobody
    else does. Of one event loop."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._of: dict[str, Turns] = {}

    @property
    def principals(self) -> int:
        """How many have a turn."""
        return len(self._of)

    async def take(self, principal: str) -> None:
        """Wait for a turn, which lasts until `end`. Whoever is cancelled has none."""
        turns = self._of.get(principal)
        if turns is None:
            turns = self._of[principal] = Turns(self._at_once)
        try:
            await turns.take(principal)
        except asyncio.CancelledError:
            self._forget(principal)
            raise

    def end(self, principal: str) -> None:
        """One turn of it is over; its next one begins."""
        self._of[principal].end()
        self._forget(principal)

    @asynccontextmanager
    async def turn(self, principal: str | None) -> AsyncIterator[None]:
        """`take`, and `end` afterwards. Nobody (None) has no turns, and waits for none."""
        if principal is None:
            yield
            return
        await self.take(principal)
        try:
            yield
        finally:
            self.end(principal)

    def _forget(self, principal: str) -> None:
        if principal in self._of and self._of[principal].is_idle:
            del self._of[principal]


class SharedTurns:
    """`at_once` have a turn at a time, and one principal never all of them: somebody whose turns
    are long leaves one to the others. Nobody (None) is as one principal."""

    def __init__(self, at_once: int) -> None:
        self._all = Turns(at_once)
        self._own = OwnTurns(most_of_one(at_once))

    @property
    def is_idle(self) -> bool:
        """Whether nobody has a turn, or waits for one."""
        return not self._own.principals

    async def take(self, principal: str | None) -> None:
        """Wait for a turn, which lasts until `end`. Whoever is cancelled has none."""
        name = principal or ""
        await self._own.take(name)
        try:
            await self._all.take(name)
        except asyncio.CancelledError:
            self._own.end(name)
            raise

    def end(self, principal: str | None) -> None:
        """One turn of it is over."""
        self._all.end()
        self._own.end(principal or "")

    @asynccontextmanager
    async def turn(self, principal: str | None) -> AsyncIterator[None]:
        """`take`, and `end` afterwards."""
        await self.take(principal)
        try:
            yield
        finally:
            self.end(principal)


class NestedTurns:
    """`at_once` have a turn at a time, as of `SharedTurns`, and the parts of a principal share its
    turns in the same way: one that makes ever more parts gets no more turns for them. Nothing is
    kept of who has no turn."""

    def __init__(self, at_once: int) -> None:
        self._most_of_one = most_of_one(at_once)
        self._all = Turns(at_once)
        self._of: dict[str, SharedTurns] = {}

    @property
    def principals(self) -> int:
        """How many have a turn, or wait for one."""
        return len(self._of)

    @asynccontextmanager
    async def turn(self, principal: str, part: str) -> AsyncIterator[None]:
        """A turn of a principal's part. Whoever is cancelled has none."""
        own = self._of.get(principal)
        if own is None:
            own = self._of[principal] = SharedTurns(self._most_of_one)
        try:
            async with own.turn(part), self._all.turn(principal):
                yield
        finally:
            if own.is_idle and self._of.get(principal) is own:
                del self._of[principal]

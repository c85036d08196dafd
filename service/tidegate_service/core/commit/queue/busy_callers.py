"""Callers who keep the event loop busy while others commit, too.

A flood of one caller's small commits would otherwise be decided group after group, and others'
commits, whatever group they are in, would wait at each of their steps for the event loop. Such a
caller rests after a shared group for as long as the group took, so half of the time is others'.

It does not rest after a group of its own (of a plain table): that waits for its store for most of
its time, and takes nothing from others meanwhile. It has fewer of these at a time instead, for as
long as the passes of the event loop are long.
"""

import asyncio
import contextvars
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_service.core.commit.queue.table_queue import weight_of, who_of
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal

ACTIONS_IN_COMPANY = 500
"""As many actions may be in a shared group while several callers commit, a quarter of a full one:
others' commits in it, and in a group beside it, wait for it to be decided and saved."""
_COMMIT = 50
"""What a commit costs by itself, in actions."""
_FEW = 200
"""A caller does not rest after a group that did so little for it: three commits at once of an
action each. One that commits on a single connection goes on at once."""
_FORGOTTEN_S = 1.0
"""In so long, what a caller has done comes to count for 1/e as much."""
_COMPANY_S = 10.0
"""For so long after its last commit a caller is company."""
_MORE_THAN_EQUAL = 1.25
"""A caller is busy that does more than so many times an equal part: of two callers, one that does
more than five eighths."""
_LEAST_OWN = 1
"""Groups of its own that a busy caller has at the least. With two, others wait half longer."""
_LEAST_OF_OTHERS = 4
"""The same of a busy caller that does too little to make passes long: others do."""
_WHY = 4_000
"""Actions a second from which on a caller may make passes long: eighty commits of one each."""


@dataclass(slots=True)
class _Done:
    actions: float
    last: float
    is_busy: bool = False


class BusyCallers:
    """What each caller has done in groups lately, and who is busy or rests. Nobody (None) is
    neither: there is nobody else. Times are the event loop's."""

    def __init__(self) -> None:
        self._done: dict[str, _Done] = {}
        self._as_of = 0.0
        self._resting = Counter[str]()

    @property
    def in_company(self) -> bool:
        """Whether several callers have committed in the last seconds."""
        return len(self._done) > 1

    def is_busy(self, who: str) -> bool:
        """Whether this caller was busy when a group with its proposals last ended."""
        done = self._done.get(who)
        return done is not None and done.is_busy

    def least_own(self, who: str) -> int:
        """How many groups of its own it has at the least, busy or not."""
        done = self._done.get(who)
        is_why = done is not None and done.actions / _FORGOTTEN_S > _WHY
        return _LEAST_OWN if is_why else _LEAST_OF_OTHERS

    def rests(self, who: str) -> bool:
        """Whether no shared group begins for this caller yet."""
        return who in self._resting

    def rest(self, callers: frozenset[str]) -> None:
        """These rest from now on; `end_rest` takes them back."""
        self._resting.update(callers)

    def ended(self, members: Sequence[WaitingProposal], now: float) -> frozenset[str]:
        """A group has ended. Returns the busy ones of its callers."""
        self._forget(now)
        found = Counter[str]()
        for member in members:
            if (who := who_of(member)) is not None:
                found[who] += _COMMIT + weight_of(member)
        for who, actions in found.items():
            done = self._done.setdefault(who, _Done(0.0, now))
            done.actions += actions
            done.last = now
        all_of_it = sum(done.actions for done in self._done.values())
        most = _MORE_THAN_EQUAL * all_of_it / max(1, len(self._done))
        for who in found:
            done = self._done[who]
            done.is_busy = self.in_company and done.actions > most
        return frozenset(
            who for who, actions in found.items() if actions > _FEW and self._done[who].is_busy
        )

    def end_rest(self, callers: frozenset[str]) -> None:
        """Those that began to rest together go on."""
        self._resting -= Counter(callers)

    def _forget(self, now: float) -> None:
        left = math.exp((self._as_of - now) / _FORGOTTEN_S)
        self._as_of = now
        self._done = {
            who: _Done(done.actions * left, done.last, done.is_busy)
            for who, done in self._done.items()
            if now - done.last < _COMPANY_S
        }


class OwnPlaces:
    """How many groups of its own a busy caller may have at a time: `most`, and one less after each
    that ended in a pass of the event loop of `long_pass_s`. A commit waits for some twenty passes
    one after another."""

    def __init__(self, most: int, *, long_pass_s: float) -> None:
        self._most = self.of_busy = most
        self._long_pass_s = long_pass_s

    def look(self) -> None:
        """A group of its own has ended. How long the pass takes is known in the next one."""
        loop = asyncio.get_running_loop()
        loop.call_soon(self._passed, loop.time(), context=contextvars.Context())

    def _passed(self, began: float) -> None:
        if asyncio.get_running_loop().time() - began >= self._long_pass_s:
            self.of_busy = max(1, self.of_busy - 1)
        else:
            self.of_busy = min(self._most, self.of_busy + 1)

"""The groups that run, and whether another one may begin beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegate_service.core.commit.queue.busy_callers import (
    ACTIONS_IN_COMPANY,
    BusyCallers,
    OwnPlaces,
)
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.commit.queue.ready_tables import Need
from tidegate_service.core.commit.queue.table_queue import GROUP_ACTIONS, who_of
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal


@dataclass(frozen=True, slots=True)
class Place:
    """What a group of its own counts for: its store, if it waits for one, and its caller; and the
    time of the loop at which it began."""

    store: str | None
    who: str | None
    began: float


TABLES_OF_ONE = 8
"""Tables of one caller in a shared group: whoever comes next waits until the group has ended, and
that takes longer with each table. With 32, one who commits to 40 lands a fifth more, and others'
commits take half as long again."""

HANGS_S = 3.0
"""A store hangs whose group takes so long, until another one takes less. A group of one caller's
flood takes two seconds of a store that answers (`core.commit.group`)."""

Callers = frozenset[str | None]
"""Those of a shared group."""


class RunningGroups:
    """Those of one queue. One caller never has all places of a kind, so another one's proposals
    find a group that may begin. Nobody (None) is not held back: there is nobody else."""

    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self.shared: list[Callers] = []
        self.own: list[Place] = []
        self._hang: set[str] = set()
        self.busy = BusyCallers()
        self._places = OwnPlaces(limits.own_of_a_caller, long_pass_s=limits.long_pass_s)

    @property
    def may_share(self) -> bool:
        """Whether another shared group may begin."""
        return len(self.shared) < self._limits.shared

    @property
    def most_shared_actions(self) -> int:
        """How many actions may be in the shared group that begins."""
        return ACTIONS_IN_COMPANY if self.busy.in_company else GROUP_ACTIONS

    def begin_shared(self, members: Iterable[WaitingProposal]) -> None:
        """A shared group of these proposals begins."""
        self.shared.append(_callers_of(members))

    def end_shared(self, members: Sequence[WaitingProposal], now: float) -> frozenset[str]:
        """A shared group has ended, at that time of the loop. Returns its callers that rest from
        now on."""
        self.shared.remove(_callers_of(members))
        busy = self.busy.ended(members, now)
        self.busy.rest(busy)
        return busy

    def end_own(self, place: Place, members: Sequence[WaitingProposal], now: float) -> None:
        """A group of its own has ended, at that time of the loop."""
        self.own.remove(place)
        if place.store:
            hangs = now - place.began >= HANGS_S
            (self._hang.add if hangs else self._hang.discard)(place.store)
        self.busy.ended(members, now)
        self._places.look()

    def may_share_for(self, who: str | None, tables: int) -> bool:
        """Whether a table may be in the shared group that begins because `who` has a proposal
        there. The group has so many tables of this caller already."""
        if who is None or not self.may_share:
            return self.may_share
        if self.busy.rests(who):
            return False
        groups = sum(who in callers for callers in self.shared)
        return groups < self._limits.shared_of_a_caller and tables < TABLES_OF_ONE

    def may_begin(self, who: str | None, need: Need, tables: int, now: float) -> bool:
        """Whether a group may begin for this caller, of what it needs; `tables` as above."""
        if need.own:
            return self._may_have_own(need.store, who, now)
        return self.may_share_for(who, tables)

    def _may_have_own(self, store: str | None, who: str | None, now: float) -> bool:
        """Whether another group of its own may begin there."""
        if len(self.own) >= self._limits.own or self.has_its_share(who):
            return False
        if store is None:
            return True
        # Stores that hang are one: callers with a store each would have all places.
        hang = self._hanging(now)
        stores = hang if store in hang else {store}
        return sum(other.store in stores for other in self.own) < self._limits.own_of_a_store

    def _hanging(self, now: float) -> set[str]:
        late = (one.store for one in self.own if now - one.began >= HANGS_S)
        return self._hang.union(store for store in late if store)

    def has_its_share(self, who: str | None) -> bool:
        """Whether a caller has all of the groups of their own that one may have."""
        if who is None:
            return False
        of_caller = sum(who == other.who for other in self.own)
        most = self._limits.own_of_a_caller
        if self.busy.is_busy(who):
            most = min(most, max(self._places.of_busy, self.busy.least_own(who)))
        return of_caller >= most


def _callers_of(members: Iterable[WaitingProposal]) -> Callers:
    """Whose proposals they are."""
    return frozenset(map(who_of, members))

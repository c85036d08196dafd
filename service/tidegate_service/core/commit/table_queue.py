"""One table's proposals that wait, and which of them go together."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate_service.core.access.roles import share_of
from tidegate_service.core.commit.waiting_proposal import WaitingProposal

GROUP_MEMBERS = 256
GROUP_ACTIONS = 2_000
"""Bounds of one group; actions by `Proposal.weight`. A proposal of more is decided alone."""


def who_of(member: WaitingProposal) -> str | None:
    """In whose name it waits."""
    return share_of(member.context.caller.principal)


def is_large(member: WaitingProposal) -> bool:
    """Whether it would have others wait for what it takes."""
    proposal = member.proposal
    return proposal.weight > GROUP_ACTIONS or proposal.reads.is_long or member.takes_long


class Line:
    """Who waits: each one's own in the order in which they came, one after the other of those whose
    they are, so that nobody waits for more of another's than there are before it of its own."""

    def __init__(self) -> None:
        self._of: OrderedDict[str | None, deque[WaitingProposal]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[WaitingProposal]:
        return (member for own in self._of.values() for member in own)

    def __contains__(self, member: WaitingProposal) -> bool:
        return member in self._of.get(who_of(member), ())

    @property
    def first(self) -> WaitingProposal:
        """Whose turn it is."""
        return next(iter(self._of.values()))[0]

    def of(self, who: str | None) -> int:
        """How many are this one's."""
        return len(self._of.get(who, ()))

    def append(self, member: WaitingProposal) -> None:
        self._of.setdefault(who_of(member), deque()).append(member)
        self._count += 1

    def put_back(self, member: WaitingProposal) -> None:
        """Its turn comes again, before all others."""
        who = who_of(member)
        self._of.setdefault(who, deque()).appendleft(member)
        self._of.move_to_end(who, last=False)
        self._count += 1

    def pop(self) -> WaitingProposal:
        """Take the first one out; the turn is the next one's."""
        who, own = next(iter(self._of.items()))
        member = own.popleft()
        self._count -= 1
        if own:
            self._of.move_to_end(who)
        else:
            del self._of[who]
        return member

    def remove(self, member: WaitingProposal) -> None:
        """Raises `KeyError` or `ValueError` for one that does not wait."""
        own = self._of[who_of(member)]
        own.remove(member)
        self._count -= 1
        if not own:
            del self._of[who_of(member)]


@dataclass(slots=True)
class TableQueue:
    """`own` is set once the table's lock was found held, `unsure` once it has to be looked at.
    While there is a next `look`, its next group waits for it to hold `returning` proposals; `seen`
    were there at the last one."""

    waiting: Line = field(default_factory=Line)
    busy: bool = False
    own: bool = False
    unsure: bool = False
    look: asyncio.TimerHandle | None = None
    returning: int = 0
    seen: int = 0

    @property
    def is_held(self) -> bool:
        return self.look is not None and len(self.waiting) < self.returning

    @property
    def is_full(self) -> bool:
        """Whether those who wait fill a group."""
        if self.waiting and (self.waiting.first.alone or is_large(self.waiting.first)):
            return True
        return sum(member.proposal.weight for member in self.waiting) >= GROUP_ACTIONS

    @property
    def is_due(self) -> bool:
        """Whether its log has to be looked into, if it is a catalog-managed table's."""
        first = self.waiting.first
        head = first.context.heads.known(first.table.id)
        return self.unsure or (head is not None and head.is_due(first.context.monotonic_s()))

    @property
    def needs_own(self) -> bool:
        first = self.waiting.first
        return (
            self.own
            or self.is_due
            or first.alone
            or is_large(first)
            or not first.table.catalog_managed
        )

    def let_go(self) -> None:
        if self.look is not None:
            self.look.cancel()
            self.look = None

    def take(self, room: int, actions: int) -> list[WaitingProposal]:
        """The first of those who wait, as many as may go together. An id that is named twice
        waits for what becomes of its first copy."""
        taken: list[WaitingProposal] = []
        ids: set[str] = set()
        left: list[WaitingProposal] = []
        while self.waiting and len(taken) < room:
            member = self.waiting.first
            actions -= member.proposal.weight
            if taken and (actions < 0 or member.alone or is_large(member)):
                break
            self.waiting.pop()
            if member.proposal.transaction_id in ids:
                left.append(member)
                continue
            ids.add(member.proposal.transaction_id)
            taken.append(member)
            if member.alone:
                break
        for member in reversed(left):
            self.waiting.put_back(member)
        return taken

"""One table's waiting proposals, and which of them go into one group."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.sharing import offload

GROUP_MEMBERS = 256
GROUP_ACTIONS = 2_000
"""Bounds of one group, in actions by `weight_of`. A proposal of half as many is decided alone."""
MEMBERS_IN_COMPANY = 32
"""The same of a group of its own where several callers commit to the table: all are told once the
group is over. Of 190 writers of one caller, another one's commit else waits for all of them."""
COMPANY_S = 10.0
"""For so long a caller is company to others of the table. A group that began as it was away would
take its time: the files that it puts together on an object store alone take a second."""
_CHARACTERS = 2
"""So many characters of predicates take about as long to read, or to evaluate, as an action takes
to be decided."""
_ENGINE_CHARACTERS = 100


def who_of(member: WaitingProposal) -> str | None:
    """The caller whose share the proposal counts for."""
    return member.context.caller.share


def weight_of(member: WaitingProposal) -> int:
    """What the proposal takes of its group's actions."""
    return member.proposal.weight + member.proposal.reads.length // _CHARACTERS


def is_large(member: WaitingProposal) -> bool:
    """Whether other proposals would wait long for this one: a heavy proposal waits for its caller's
    turn at a thread."""
    is_very_long = member.proposal.reads.is_very_long
    return weight_of(member) >= offload.HEAVY or is_very_long or member.takes_long


class Line:
    """The waiting proposals. Callers take turns, and each caller's proposals go in the order in
    which they came. So a proposal waits for about as many proposals of each other caller as of its
    own caller."""

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
    def callers(self) -> Collection[str | None]:
        """Whose proposals wait, in the order of their turns."""
        return self._of.keys()

    @property
    def first(self) -> WaitingProposal:
        """The proposal whose turn it is."""
        return next(iter(self._of.values()))[0]

    def first_of(self, who: str | None) -> WaitingProposal:
        """The caller's first proposal. Raises `KeyError` where none waits."""
        return self._of[who][0]

    def turn_to(self, who: str | None) -> None:
        """It is this caller's turn. Raises `KeyError` where it has no proposal that waits."""
        self._of.move_to_end(who, last=False)

    def of(self, who: str | None) -> int:
        """How many proposals of this caller wait."""
        return len(self._of.get(who, ()))

    def append(self, member: WaitingProposal) -> None:
        self._of.setdefault(who_of(member), deque()).append(member)
        self._count += 1

    def put_back(self, member: WaitingProposal) -> None:
        """Put a proposal back as the first: its turn comes before all others."""
        who = who_of(member)
        self._of.setdefault(who, deque()).appendleft(member)
        self._of.move_to_end(who, last=False)
        self._count += 1

    def bring_forward(self, member: WaitingProposal) -> None:
        """Have a proposal that waits be the first."""
        self.remove(member)
        self.put_back(member)

    def pop(self) -> WaitingProposal:
        """Take the first proposal out. The next turn is the next caller's."""
        who, own = next(iter(self._of.items()))
        member = own.popleft()
        self._count -= 1
        if own:
            self._of.move_to_end(who)
        else:
            del self._of[who]
        return member

    def remove(self, member: WaitingProposal) -> None:
        """Raises `KeyError` or `ValueError` for a proposal that does not wait."""
        own = self._of[who_of(member)]
        own.remove(member)
        self._count -= 1
        if not own:
            del self._of[who_of(member)]


Engine = tuple[str | None, str]
"""A caller, and what its engine says that it is."""


def engine_of(who: str | None, engine_info: str | None) -> Engine:
    return who, (engine_info or "")[:_ENGINE_CHARACTERS]


@dataclass(frozen=True, slots=True, eq=False)
class LateWriter:
    """The writer of a staged commit that came too late. `turn` is done when it may be told so."""

    transaction_id: str
    engine: Engine
    turn: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """The next version of a table, kept for a writer since a time of the loop, until the timer runs
    out (`core.commit.queue.kept_versions`)."""

    writer: LateWriter
    since: float
    timer: asyncio.TimerHandle


@dataclass(slots=True)
class TableQueue:
    """One table's queue.

    `busy` says that a group of the table runs. `own` is set once the table's row was found locked,
    `unsure` once the table's log has to be checked. While `linger` is set, the table's next group
    waits until `returning` proposals wait. While a version is `kept`, no group begins. Of `late`,
    the first one is the next that a version is kept for. `store` is the table's, once somebody
    needed it. Of callers, the time at which each last `came` is known for as long as anybody waits.
    """

    waiting: Line = field(default_factory=Line)
    busy: bool = False
    own: bool = False
    unsure: bool = False
    linger: asyncio.TimerHandle | None = None
    returning: int = 0
    kept: KeptVersion | None = None
    late: OrderedDict[LateWriter, None] = field(default_factory=OrderedDict)
    store: str | None = None
    came: dict[str | None, float] = field(default_factory=dict)

    @property
    def lingers(self) -> bool:
        return self.linger is not None and len(self.waiting) < self.returning

    @property
    def is_full(self) -> bool:
        """Whether the waiting proposals fill a group."""
        if self.waiting and (self.waiting.first.alone or is_large(self.waiting.first)):
            return True
        return sum(map(weight_of, self.waiting)) >= GROUP_ACTIONS

    def in_company(self, now: float) -> bool:
        """Whether several callers commit to the table: they wait, or came in the last seconds."""
        lately = (who for who, when in self.came.items() if now - when < COMPANY_S)
        return len({*self.waiting.callers, *lately}) > 1

    def most_own(self, now: float) -> int:
        """How many members a group of its own may have that begins now."""
        return MEMBERS_IN_COMPANY if self.in_company(now) else GROUP_MEMBERS

    @property
    def is_due(self) -> bool:
        """Whether the table's log has to be checked, if the table is catalog-managed."""
        first = self.waiting.first
        head = first.context.heads.known(first.table.id)
        return self.unsure or (head is not None and head.is_due(first.context.monotonic_s()))

    def needs_own(self, first: WaitingProposal) -> bool:
        """Whether a group that begins with this proposal has to be one of its own."""
        return (
            self.own
            or first.alone
            or not first.table.kind.shares_groups
            or is_large(first)
            or self.is_due
        )

    def begin_with(self, who: str | None) -> None:
        """Have the next group begin with this caller's proposal, if the first one would be decided
        alone. Otherwise all go along in the order in which they wait."""
        first = self.waiting.first
        if first.alone or is_large(first):
            self.waiting.turn_to(who)

    def end_linger(self) -> None:
        if self.linger is not None:
            self.linger.cancel()
            self.linger = None

    def end_group(self) -> None:
        self.busy = self.own = self.unsure = False

    def take(self, room: int, actions: int) -> list[WaitingProposal]:
        """Take the first waiting proposals, as many as may go into one group. A second copy of a
        transaction id waits for the outcome of the first copy."""
        taken: list[WaitingProposal] = []
        ids: set[str] = set()
        left: list[WaitingProposal] = []
        while self.waiting and len(taken) < room:
            member = self.waiting.first
            actions -= weight_of(member)
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

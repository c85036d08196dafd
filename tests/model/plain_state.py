"""A state of the model of a plain table, and what single steps make of it."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

FOREIGN = 4
"""An entry of the log: the number of a proposal (0, 1), of a fence for one (2, 3), or this."""
NAMES = ("a", "b")
FENCES = (2, 3)


class Kind(Enum):
    """What a proposal is. Both proposals and FOREIGN change data; a fence does not."""

    APPEND = "adds files, and was judged by nothing"
    READER = "read version 0, and conflicts with any change since"
    READER_OF_FOREIGN = "read version 0, and conflicts with the foreign commit alone"
    NEEDS_OTHER = "has no read version; valid once the other proposal is there"
    NEEDS_FOREIGN = "has no read version; valid once the foreign commit is there"
    ENDS_WITH_FOREIGN = "has no read version; valid until the foreign commit is there"


class Process(NamedTuple):
    """A request under way: `work` are the entries to put after version `head`, which the instance
    knows of; the first `done` of them it has put. `work` is empty where nothing is under way."""

    work: tuple[int, ...]
    head: int
    done: int


IDLE = Process((), 0, 0)


class Plain(NamedTuple):
    """A state. `log` is everything that ever was in it, versions from 1; of those, `hidden` were
    cleaned up. The index starts at version `base`: it knows the ids from there to `head`, and of
    older versions those in `kept`; `closed` are its tombstones. `told` is for each proposal 0, the
    version it was acked as, or -1 for never. `late` are entries whose PUT for the version after the
    log's end may yet arrive. `kept`, `closed`, `late` and `past` (what has happened once) are sets
    of bits."""

    log: tuple[int, ...] = ()
    hidden: int = 0
    head: int = 0
    base: int = 0
    kept: int = 0
    closed: int = 0
    told: tuple[int, int] = (0, 0)
    lock: int = 0
    processes: tuple[Process, Process] = (IDLE, IDLE)
    late: int = 0
    past: int = 0


class Broken(Exception):
    """A promise is broken; the message says which."""


def judged(kind: Kind, x: int, seen: tuple[int, ...], base: int) -> str:
    """What a proposal is told by the versions that are seen: "ready", "conflict", "invalid" or "too
    old". Of what was cleaned up, it is known what it made of the table, and not what a reader of
    version 0 would have conflicted with."""
    match kind:
        case Kind.READER | Kind.READER_OF_FOREIGN if base:
            return "too old"
        case Kind.READER:
            return "conflict" if any(entry not in FENCES for entry in seen) else "ready"
        case Kind.READER_OF_FOREIGN:
            return "conflict" if FOREIGN in seen else "ready"
        case Kind.NEEDS_OTHER:
            return "ready" if 1 - x in seen else "invalid"
        case Kind.NEEDS_FOREIGN:
            return "ready" if FOREIGN in seen else "invalid"
        case Kind.ENDS_WITH_FOREIGN:
            return "invalid" if FOREIGN in seen else "ready"
    return "ready"


def name_of(entry: int) -> str:
    return f"fence of {NAMES[entry - 2]}" if entry in FENCES else NAMES[entry]


def bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def with_process(state: Plain, number: int, process: Process) -> Plain:
    log, hidden, head, base, kept, closed, told, lock, (first, second), late, past = state
    both = (process, second) if number == 1 else (first, process)
    return Plain(log, hidden, head, base, kept, closed, told, lock, both, late, past)


def ended(state: Plain, number: int) -> Plain:
    """The instance has nothing under way; the lock is free, if it was its own."""
    log, hidden, head, base, kept, closed, told, lock, (first, second), late, past = state
    both = (IDLE, second) if number == 1 else (first, IDLE)
    left = 0 if lock == number else lock
    return Plain(log, hidden, head, base, kept, closed, told, left, both, late, past)


def closed(state: Plain, x: int) -> Plain:
    return state._replace(closed=state.closed | 1 << x)


def unlocked(state: Plain) -> Plain:
    return state._replace(lock=0)


def as_it_is(state: Plain) -> Plain:
    return state


def rebuilt(state: Plain, forgets: bool) -> Plain:
    """The index made from the log, which starts at a checkpoint."""
    log, hidden = state.log, state.hidden
    known = log[: min(hidden, state.head)]
    kept = 0 if forgets else state.kept | bits(x for x in (0, 1) if x in known)
    # A fence that was read in has left its tombstone.
    read = log[hidden:] if forgets else known + log[hidden:]
    fenced = bits(x for x in (0, 1) if FENCES[x] in read)
    closed = fenced if forgets else state.closed | fenced
    return state._replace(head=len(log), base=hidden + 1, kept=kept, closed=closed)


def told(state: Plain, x: int, answer: int) -> Plain:
    """The client of a proposal is told the version that it landed as, or -1: never."""
    before, name = state.told[x], NAMES[x]
    if answer == -1:
        if x in state.log:
            raise Broken(f"{name} is told never, and is version {state.log.index(x) + 1}")
    elif answer > len(state.log) or state.log[answer - 1] != x:
        raise Broken(f"{name} is acked as version {answer}, which is another's")
    elif state.head < answer:
        raise Broken(f"{name} is acked as version {answer}, and readers see {state.head}")
    if before not in (0, answer):
        raise Broken(f"{name} is told {answer} after {before}")
    told = (answer, state.told[1]) if x == 0 else (state.told[0], answer)
    return state._replace(told=told)

"""A state of the model of a catalog-managed table, and what single steps make of it."""

from enum import Enum
from typing import NamedTuple

NAMES = ("a", "b")


class Kind(Enum):
    """What a proposal is."""

    APPEND = "adds files, and conflicts with nothing"
    READER = "read version 0, and conflicts with any change since"


class Stage(Enum):
    """Where a publisher is with a version."""

    PUT = 1
    MARK = 2
    FORGET = 3


Publisher = tuple[()] | tuple[int, int, int]
"""A version, its content, the number of its stage; empty where nothing is being published."""
READ, DECIDED = 1, 2
Process = tuple[()] | tuple[int, int, int]
"""How far a request is (`READ`, `DECIDED`), its proposal, and the head it was decided by."""


class Managed(NamedTuple):
    """A state. `rows` are the ratified versions from 1, of which `published` are marked so, and the
    bytes of `bare` are forgotten; `log` are the files. `closed` are tombstones, `sent` the
    proposals of which a copy was executed, as bits. `told` is 0, the version it was acked as, or
    -1. `late` are PUTs that may yet arrive. `looked` is whether the log has been looked at since
    the database was restored."""

    rows: tuple[int, ...] = ()
    published: int = 0
    bare: int = 0
    log: tuple[int, ...] = ()
    closed: int = 0
    sent: int = 0
    told: tuple[int, int] = (0, 0)
    lock: int = 0
    processes: tuple[Process, Process] = ((), ())
    publishers: tuple[Publisher, Publisher] = ((), ())
    late: tuple[tuple[int, int], ...] = ()
    looked: bool = True
    quarantined: bool = False
    forgotten: bool = False
    past: int = 0


class Broken(Exception):
    """A promise is broken; the message says which."""


def put_in(pair: tuple[object, object], number: int, value: object) -> tuple[object, object]:
    return (value, pair[1]) if number == 1 else (pair[0], value)


def as_it_is(state: Managed) -> Managed:
    return state


def unlocked(state: Managed) -> Managed:
    return state._replace(lock=0)


def ended(state: Managed, number: int) -> Managed:
    after = state._replace(processes=put_in(state.processes, number, ()))
    return after._replace(lock=0) if state.lock == number else after


def landed(state: Managed, version: int, content: int) -> Managed:
    """A file is in the log."""
    if version > len(state.log) + 1:
        raise Broken(f"version {version} is published, and version {version - 1} is not")
    ratified = not state.forgotten and version <= len(state.rows)
    if ratified and state.rows[version - 1] != content:
        raise Broken(
            f"version {version} was ratified as {NAMES[state.rows[version - 1]]} and lies in the "
            f"log as {NAMES[content]}"
        )
    return state._replace(log=(*state.log, content))


def told(state: Managed, x: int, answer: int) -> Managed:
    before, name = state.told[x], NAMES[x]
    if answer == -1:
        if x in state.rows or x in state.log:
            raise Broken(f"{name} is told never, and it has landed")
    elif answer <= len(state.log) and state.log[answer - 1] != x:
        raise Broken(
            f"{name} is acked as version {answer}, which lies in the log as "
            f"{NAMES[state.log[answer - 1]]}"
        )
    if before not in (0, answer):
        raise Broken(f"{name} is told {answer} after {before}")
    told = (answer, state.told[1]) if x == 0 else (state.told[0], answer)
    return state._replace(told=told)

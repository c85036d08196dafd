"""Work on the actions of large commits, which would hold the event loop for seconds.

It runs in threads of its own: few, because they share one interpreter, and not those that files
are written in, because others' commits wait for these.
"""

import asyncio
import sys
from collections.abc import Callable, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack
from weakref import WeakKeyDictionary

from tidegate_protocol.log import content as contents
from tidegate_protocol.log.actions import Metadata, has_any
from tidegate_protocol.log.content import Content
from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION, Proposal
from tidegate_service.core.observe import correlation
from tidegate_service.core.sharing.shares import most_of_one
from tidegate_service.core.sharing.turns import OwnTurns, Turns

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HEAVY = 1_000
"""From so many actions on, a pass over them takes milliseconds, and all passes together tens of
them. To begin one in a thread takes a tenth of a millisecond."""

LONG = 5_000
"""So many actions no other proposal should wait for. What takes long to be read weighs as much."""

LONG_METADATA = 4 * 1024
"""In bytes, of metadata that is parsed and rendered."""

PARSED_INLINE = 4 * 1024
"""In bytes. More of a log takes milliseconds to parse, where its lines have a few bytes each."""

SWITCH_S = 0.0005
"""For so long a thread keeps the interpreter to itself while another one waits for it, during such
work. With Python's 5 ms, whoever feeds the database lets it wait between two pieces of what a
thread has made: a tenth of the time of a very large commit. Small ones pay for it with as much."""

THREADS = 2
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="heavy")
_NOBODYS = ""
_BACKGROUND = "tidegate"
"""In whose name the service does what nobody asked it for. No caller has the name."""


def weight_of_log(content: Sized) -> int:
    """How much work it is to parse what a log holds, in actions."""
    return LONG if len(content) > PARSED_INLINE else 0


def weight_of_metadata(*found: Metadata | None) -> int:
    """How much work it is to parse and render the metadata of tables, in actions."""
    size = sum(len(metadata.raw) for metadata in found if metadata is not None)
    return HEAVY if size > LONG_METADATA else 0


def weight_of(proposal: Proposal) -> int:
    """How much work a proposal is in itself, in actions: very long predicates, and the expressions
    in a metaData action, take as long to be read as very many. One of three thousand characters
    takes a tenth of a second."""
    is_long = proposal.reads.is_very_long or has_any(proposal.actions, Metadata)
    return max(proposal.weight, LONG if is_long else 0)


async def is_same(content: Content, found: Content) -> bool:
    """Whether two commit files have the same bytes. A large file is in pieces, which are hashed to
    compare it; files of different lengths differ at once."""
    return await run(len(content) // BYTES_AN_ACTION, contents.is_same, content, found)


async def sha256_of(content: Content) -> str:
    """The digest of a commit file's bytes, in hex."""
    return await run(len(content) // BYTES_AN_ACTION, contents.sha256_of, content)


async def run(size: int, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """The result of `work(*args)`, which goes through `size` actions; off the event loop where
    they are many, in the turn of the principal whose request it is done for, or of the service
    itself. Whoever is cancelled leaves at once, and the turn lasts for as long as the thread works:
    or else others would queue up behind it, out of their turns."""
    if size < HEAVY:
        return work(*args)
    request = correlation.current()
    who = _BACKGROUND if request is None else request.share
    loop = asyncio.get_running_loop()
    turns = _turns_of.setdefault(loop, _HeavyTurns())
    with sharing:
        await turns.take(who)
        # Not the thread's work itself, which would be told to be over while it goes on.
        return await asyncio.shield(
            loop.run_in_executor(_threads, partial(_in_turn, loop, turns, who, work, *args))
        )


class _HeavyTurns:
    """The turns of one event loop at the threads. A principal's pass may take seconds: another
    principal's finds a thread that is free, or soon is."""

    def __init__(self) -> None:
        self._all = Turns(THREADS)
        self._own = OwnTurns(most_of_one(THREADS))

    async def take(self, who: str | None) -> None:
        """Wait for a turn of one's own and then for one of all. Whoever is cancelled has none."""
        if who is not None:
            await self._own.take(who)
        try:
            await self._all.take(who or _NOBODYS)
        except asyncio.CancelledError:
            if who is not None:
                self._own.end(who)
            raise

    def end(self, who: str | None) -> None:
        """One turn is over."""
        self._all.end()
        if who is not None:
            self._own.end(who)


_turns_of: WeakKeyDictionary[asyncio.AbstractEventLoop, _HeavyTurns] = WeakKeyDictionary()
"""A turn is a future of its loop, which no other loop may give away."""


def _in_turn(
    loop: asyncio.AbstractEventLoop,
    turns: _HeavyTurns,
    who: str | None,
    work: Callable[[Unpack[Ts]], T],
    *args: *Ts,
) -> T:
    try:
        return work(*args)
    finally:
        # A loop that was closed meanwhile has no turns any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(turns.end, who)


class _Sharing:
    """`with sharing:` threads take turns at the interpreter as often as `SWITCH_S` says. For the
    event loop alone."""

    def __init__(self) -> None:
        self._users = 0
        self._otherwise_s = 0.0

    def __enter__(self) -> None:
        if not self._users:
            self._otherwise_s = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_S)
        self._users += 1

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            sys.setswitchinterval(self._otherwise_s)


sharing = _Sharing()

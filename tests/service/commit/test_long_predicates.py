"""Places for proposals with long predicates: no principal has all of them."""

import asyncio

import pytest

from tidegate_protocol.proposal.transaction import (
    LONG_PREDICATES,
    VERY_LONG_PREDICATES,
    Proposal,
    Reads,
)
from tidegate_service.core.instance.long_predicates import (
    MOST_LONG,
    MOST_LONGEST,
    MOST_VERY_LONG,
    MOST_WIDE,
    LongPredicates,
)
from tidegate_service.core.instance.predicate_threads import LONGEST_PREDICATES
from tidegate_service.core.ports.index import TakesLong

pytestmark = pytest.mark.anyio


PATIENCE_S = 30.0


class WideVersions:
    """Versions whose metadata is long."""

    async def is_used(self, transaction_id: str) -> bool:
        return False

    async def state_at(self, version: int, *, most_bytes: int | None) -> None:
        if most_bytes is not None:
            raise TakesLong


TABLES = 8


def proposal(length: int = LONG_PREDICATES, **fields: int) -> Proposal:
    reads = Reads(predicates=("x = 1 or " * (length // 8) + "x = 1",))
    return Proposal(transaction_id="id", operation="WRITE", actions=(), reads=reads, **fields)


async def test_one_principal_never_has_all_of_them():
    """Its tables are held up, and it sends to all of them."""
    predicates, may_end = LongPredicates(), asyncio.Event()
    begun: list[str] = []

    def send(principal: str, table: str) -> asyncio.Task[None]:
        async def decide() -> None:
            begun.append(principal)
            if principal == "flood":
                await may_end.wait()

        # Without a read version nothing is asked of the index.
        decided = predicates.decided(None, table, proposal(), decide, principal=principal)
        return asyncio.create_task(decided)

    floods = [send("flood", str(n % TABLES)) for n in range(2 * MOST_LONG)]
    async with asyncio.timeout(30):
        while len(begun) < MOST_LONG // 2:
            await asyncio.sleep(0.01)
        await send("other", "own")
    assert begun.count("flood") < MOST_LONG
    may_end.set()
    await asyncio.gather(*floods)
    assert begun.count("flood") == 2 * MOST_LONG


async def test_those_of_wide_versions_hold_few_schemas_and_nobody_elses_places():
    predicates, may_end = LongPredicates(), asyncio.Event()
    begun: list[str] = []

    def send(table: str, versions: WideVersions | None, **fields: int) -> asyncio.Task[None]:
        async def decide() -> None:
            begun.append(table)
            if table == "wide":
                await may_end.wait()

        sent = proposal(**fields)
        decided = predicates.decided(versions, table, sent, decide, principal="flood")
        return asyncio.create_task(decided)

    floods = [send("wide", WideVersions(), read_version=0) for _ in range(2 * MOST_LONG)]
    async with asyncio.timeout(30):
        while len(begun) < MOST_WIDE:
            await asyncio.sleep(0.01)
        # What waits for a turn has no place, not even of that table.
        await send("narrow", None)
    assert begun.count("wide") == MOST_WIDE
    may_end.set()
    await asyncio.gather(*floods)
    assert begun.count("wide") == 2 * MOST_LONG


@pytest.mark.parametrize(
    ("length", "most", "shorter"),
    [
        (LONGEST_PREDICATES, MOST_LONGEST, VERY_LONG_PREDICATES),
        (VERY_LONG_PREDICATES, MOST_VERY_LONG, LONG_PREDICATES),
    ],
)
async def test_longer_ones_have_places_of_their_own(length, most, shorter):
    predicates, may_end = LongPredicates(), asyncio.Event()
    begun: list[int] = []

    async def longer(number: int) -> None:
        begun.append(number)
        await may_end.wait()

    async def nothing() -> None: ...

    def send(number: int) -> asyncio.Task[None]:
        decided = predicates.decided(
            None, str(number), proposal(length), lambda: longer(number), principal=str(number)
        )
        return asyncio.create_task(decided)

    floods = [send(number) for number in range(2 * most)]
    async with asyncio.timeout(PATIENCE_S):
        while len(begun) < most:
            await asyncio.sleep(0.01)
        await predicates.decided(None, "own", proposal(shorter), nothing, principal="own")
    assert len(begun) == most
    may_end.set()
    await asyncio.gather(*floods)

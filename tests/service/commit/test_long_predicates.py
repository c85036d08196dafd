"""Places and threads for proposals whose long predicates are read."""

import asyncio

import pytest

from tidegate_protocol.proposal.transaction import (
    LONG_PREDICATES,
    Proposal,
    Reads,
)
from tidegate_service.core.instance.long_predicates import (
    MOST_LONG,
    LongPredicates,
)

pytestmark = pytest.mark.anyio

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

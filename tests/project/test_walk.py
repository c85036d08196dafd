"""The walk of docs/architecture.md is the way of a proposal: these functions, in this order."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.repository import PACKAGES, ROOT
from tidegate_service.app import open_service

pytestmark = pytest.mark.anyio

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
_STEP = re.compile(r"^\| \d+ \|(.+)\|(.+)\|$", re.M)
_VALUE = "Proposal"
"""What the walk names and nothing calls."""
RULES = "check_conflicts"
"""What a blind append does not come to: its window knows that nothing matters to it."""
REFUSED = "of_conflict"
ACCEPTED = "committed_answer"
COMMITS = ("complete", "occupy", "PostgresCommitSection.append", "write", "commit")
TOGETHER = "BufferedPuts.put"
"""What only several proposals come to."""
PLAIN = ("occupy", "PlainBatch.record")
CATALOG_MANAGED = ("CatalogManagedBatch.record",)

Place = tuple[str, str]
"""A function's name, and its file's."""


def the_walk(*left_out: str) -> list[Sequence[Place]]:
    """The functions that the document names, in its order, each with its possible files."""
    return [
        [(name, Path(file).name) for file in re.findall(r"`([\w/]+\.py)`", files)]
        for said, files in _STEP.findall(ARCHITECTURE)
        for name in re.findall(r"`([\w.]+)`", said)
        if name not in (_VALUE, *left_out)
    ]


def check_order(called: list[Place], walk: list[Sequence[Place]]) -> None:
    found = [[place for place in places if place in called] for places in walk]
    assert [places for places, some in zip(walk, found, strict=True) if not some] == []
    order = [called.index(some[0]) for some in found]
    assert order == sorted(order), [called[place] for place in order]


_IS_OURS: ContextVar[bool] = ContextVar("is_ours", default=False)


@contextmanager
def recorded() -> Iterator[list[Place]]:
    """The functions of the repository that are called on behalf of this task, each where it is
    called first. Publishing and upkeep, which go on beside it, are not."""
    folders = tuple(f"{ROOT / name}/" for name in PACKAGES)
    seen: dict[Place, None] = {}

    def called(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(folders):
            return
        name = Path(code.co_filename).name
        # The queue begins groups on behalf of nobody.
        if _IS_OURS.get() or name == "commit_queue.py":
            seen.setdefault((code.co_qualname, name))

    order: list[Place] = []
    token = _IS_OURS.set(True)
    sys.setprofile(called)
    try:
        yield order
    finally:
        sys.setprofile(None)
        _IS_OURS.reset(token)
        order.extend(seen)


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_a_proposal_goes_the_way_that_is_described(settings, catalog_managed):
    body = table_body("main.air.flights") | {"catalog_managed": catalog_managed}
    async with (
        open_service(settings) as service,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=service.app), base_url="http://127.0.0.1/api/v1"
        ) as client,
    ):
        assert (await client.post("/tables", json=body)).status_code == 201
        commits = "/tables/main.air.flights/commits"
        assert (await client.post(commits, json=proposal(add("a")))).status_code == 201
        append = proposal(add("b"), read_version=0)
        with recorded() as accepted:
            committed = await client.post(commits, json=append)
        reader = proposal(add("c"), read_version=0, reads={"predicates": ["month = 5"]})
        with recorded() as refused:
            conflict = await client.post(commits, json=reader)
    assert (committed.status_code, committed.json()["rebased_over"]) == (201, 1)
    other_kind = PLAIN if catalog_managed else CATALOG_MANAGED
    check_order(accepted, the_walk(TOGETHER, RULES, REFUSED, *other_kind))
    assert (conflict.status_code, conflict.json()["code"]) == (409, "concurrent-append")
    check_order(refused, the_walk(TOGETHER, *COMMITS, *PLAIN, *CATALOG_MANAGED, ACCEPTED))

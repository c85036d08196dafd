"""Tokens: how they are made, whose one is, and how those that nobody has are met."""

import asyncio
import hashlib
from collections.abc import Sequence
from unittest.mock import AsyncMock

import pytest

from tidegate_service.core.access import tokens
from tidegate_service.core.access.failed_authentications import BURST, PER_S, FailedAuthentications
from tidegate_service.core.access.lookups import AT_ONCE, LiveToken
from tidegate_service.core.access.roles import (
    OPERATOR,
    Caller,
    Grant,
    Principal,
    Role,
)
from tidegate_service.core.access.tokens import (
    CACHE_S,
    TRUSTED_S,
    Authenticator,
    InvalidToken,
    NewToken,
    TokenRecord,
)
from tidegate_service.core.errors import IndexUnavailable

pytestmark = pytest.mark.anyio

HERE = "127.0.0.1"


class Kept:
    """A store of one token, which counts how often it is asked."""

    def __init__(self) -> None:
        self.token: NewToken | None = None
        self.asked = self.ids = self.found_by = 0
        self.answers = asyncio.Event()
        """What names another token than the one waits for it."""
        self.answers.set()

    async def live(self, ids: Sequence[str]) -> dict[str, LiveToken]:
        self.asked += 1
        self.ids += len(ids)
        await asyncio.sleep(0)
        if self.token is None or set(ids) != {self.token.id}:
            await self.answers.wait()
        if self.token is None or self.token.id not in ids:
            return {}
        self.found_by = self.asked
        found = Principal(name=self.token.principal, grants=self.token.grants)
        return {self.token.id: LiveToken(principal=found, sha256=self.token.sha256)}

    async def all(self) -> list[TokenRecord]:
        return []

    async def add(self, token: NewToken, *, by: Caller) -> None:
        self.token = token

    async def revoke(self, token_id: str, *, by: Caller) -> bool:
        self.token = None
        return True


async def made(store: Kept, **fields: object) -> str:
    return await tokens.create(
        store,
        **{
            "principal": "etl",
            "grants": (Grant(Role.READER, "*"),),
            "lifetime_s": None,
            "by": OPERATOR,
            "random": lambda size: bytes(range(size)),
            **fields,
        },
    )


class TestTokens:
    async def test_it_is_recognized_and_only_its_digest_is_kept(self):
        store = Kept()
        text = await made(store)
        assert text == f"tdg_{bytes(range(6)).hex()}_{bytes(range(32)).hex()}"
        assert store.token.sha256 == hashlib.sha256(text.encode()).digest()
        assert text.rpartition("_")[2] not in repr(store.token)

    @pytest.mark.parametrize(
        "fields",
        [
            {"principal": ""},
            {"principal": "a b"},
            {"principal": "a\n"},
            {"principal": "x" * 129},
            {"principal": "\x1b[31m"},
            {"grants": ()},
            {"grants": (Grant(Role.READER, "a"), Grant(Role.ADMIN, "a"))},
            {"lifetime_s": 0},
            {"lifetime_s": -1},
        ],
    )
    async def test_what_cannot_be_one_is_refused(self, fields):
        store = Kept()
        with pytest.raises(InvalidToken, match="expected"):
            await made(store, **fields)
        assert store.token is None


class TestAuthenticator:
    async def test_nothing_else_is_one(self):
        store = Kept()
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        for other in (
            "",
            "tdg_",
            text[:-1],
            text + "0",
            text + "\n",
            text.upper(),
            text.replace("tdg_", "xyz_"),
            text[:-1] + "0",
            f"tdg_{'0' * 12}_{'0' * 64}",
            text.replace("_", "__", 1),
        ):
            assert await authenticator.principal(other, address=HERE) is None

    async def test_a_wrong_secret_is_not_helped_by_the_right_one_before(self):
        store = Kept()
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        assert await authenticator.principal(text, address=HERE)
        assert await authenticator.principal(text[:-2] + "00", address=HERE) is None

    async def test_what_it_remembers_is_bounded(self):
        store = Kept()
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0, cached=2)
        for number in range(5):
            text = await made(store, random=lambda size, n=number: bytes([n]) * size)
            assert await authenticator.principal(text, address=HERE)
        assert len(authenticator._known) <= 2


class TestFailures:
    """Tokens that nobody has."""

    def unknown(self, number: int) -> str:
        return f"tdg_{number:012x}_{'0' * 64}"

    async def flooded(self, authenticator: Authenticator, count: int, *, address: str = HERE):
        tries = (
            authenticator.principal(self.unknown(number), address=address)
            for number in range(count)
        )
        assert set(await asyncio.gather(*tries)) == {None}

    @pytest.mark.parametrize("address", [HERE, "10.0.0.2"])
    async def test_a_token_is_found_behind_them(self, address):
        """Also where all have the address of a proxy that the service was not told of."""
        store = Kept()
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0, failures=undelayed())
        store.answers.clear()
        flood = asyncio.create_task(self.flooded(authenticator, 20 * AT_ONCE))
        while not store.asked:
            await asyncio.sleep(0)
        store.answers.set()
        assert await authenticator.principal(text, address=address)
        if address != HERE:
            # It waited for the query that ran, and for one that it was in.
            assert store.found_by == 2
        await flood

    async def test_a_token_that_was_valid_waits_for_none_of_them(self):
        store, now = Kept(), [100.0]
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: now[0], failures=undelayed())
        assert await authenticator.principal(text, address=HERE)
        for later_s in (CACHE_S + 1, TRUSTED_S / 2):
            now[0] += later_s
            store.answers.clear()
            flood = asyncio.create_task(self.flooded(authenticator, 2 * AT_ONCE))
            assert await authenticator.principal(text, address=HERE)
            store.answers.set()
            await flood

    async def test_the_index_fails_for_all_who_asked_it(self):
        store = Kept()
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        live, store.live = store.live, AsyncMock(side_effect=IndexUnavailable("gone"))
        tries = [authenticator.principal(text, address=HERE) for _ in range(3)]
        found = await asyncio.gather(*tries, return_exceptions=True)
        assert [type(each) for each in found] == [IndexUnavailable] * 3
        store.live = live
        assert await authenticator.principal(text, address=HERE)

    async def test_whoever_leaves_takes_nobody_along(self):
        store = Kept()
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        first, second = (
            asyncio.create_task(authenticator.principal(text, address=HERE)) for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        assert await second

    async def test_too_many_of_an_address_are_told_later(self):
        now = [100.0]
        failures = FailedAuthentications(monotonic_s=lambda: now[0], delay_s=60.0)

        async def is_delayed(address: str) -> bool:
            telling = asyncio.create_task(failures.failed(address))
            await asyncio.sleep(0)
            return not telling.done() and telling.cancel()

        assert not any([await is_delayed(HERE) for _ in range(BURST)])
        assert await is_delayed(HERE)
        assert not await is_delayed("10.0.0.2")
        now[0] += 2 / PER_S
        assert not await is_delayed(HERE)

    async def test_all_of_an_ipv6_network_is_one_address(self):
        failures = FailedAuthentications(monotonic_s=lambda: 0.0, delay_s=0.0)
        for number in range(BURST):
            await failures.failed(f"2001:db8::{number:x}")
        assert len(failures._of) == 1

    async def test_what_is_remembered_is_bounded(self):
        failures = FailedAuthentications(monotonic_s=lambda: 0.0, delay_s=0.0, addresses=2)
        for number in range(5):
            await failures.failed(f"10.0.0.{number}")
        assert len(failures._of) == 2


def undelayed() -> FailedAuthentications:
    return FailedAuthentications(monotonic_s=lambda: 0.0, delay_s=0.0)

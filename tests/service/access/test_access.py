"""Roles, scopes and tokens: what they are before anything is asked of them."""

import hashlib

import pytest

from tidegate_service.core.access import tokens
from tidegate_service.core.access.failed_authentications import BURST, PER_S, FailedAuthentications
from tidegate_service.core.access.roles import (
    ANYBODY,
    OPERATOR,
    Caller,
    Grant,
    InvalidScope,
    Principal,
    Role,
)
from tidegate_service.core.access.tokens import (
    CACHE_S,
    TRUSTED_S,
    Authenticator,
    InvalidToken,
    LiveToken,
    NewToken,
    TokenRecord,
)
from tidegate_service.core.errors import Unavailable

pytestmark = pytest.mark.anyio

HERE = "127.0.0.1"


def principal(*grants: tuple[str, str]) -> Principal:
    return Principal(name="p", grants=tuple(Grant(Role(role), scope) for role, scope in grants))


class TestScopes:
    @pytest.mark.parametrize(
        "scope",
        [
            "",
            "*.a",
            "a.*",
            "a.b.c.d",
            "a..b",
            ".a",
            "a.",
            "a b",
            "A",
            "a.B",
            "a/b",
            "a\n",
            "ä",
            "**",
        ],
    )
    def test_what_is_none_is_refused(self, scope):
        with pytest.raises(InvalidScope, match="expected"):
            Grant(Role.READER, scope)

    @pytest.mark.parametrize(
        ("scope", "table", "covered"),
        [
            ("*", "main.air.flights", True),
            ("main", "main.air.flights", True),
            ("main", "mainly.air.flights", False),
            ("main", "other.main.flights", False),
            ("main.air", "main.air.flights", True),
            ("main.air", "main.airport.flights", False),
            ("main.air.flights", "main.air.flights", True),
            ("main.air.flights", "Main.AIR.Flights", True),
            ("main.air.flights", "main.air.flights2", False),
            ("main.air.flights", "main.air", False),
            ("main", "main", True),
            ("a_b", "aXb.c.d", False),
        ],
    )
    def test_a_scope_covers_what_lies_in_it(self, scope, table, covered):
        assert Grant(Role.READER, scope).covers(table) is covered


class TestRoles:
    @pytest.mark.parametrize(
        ("held", "needed", "enough"),
        [
            (held, needed, list(Role).index(held) >= list(Role).index(needed))
            for held in Role
            for needed in Role
        ],
    )
    def test_each_includes_those_before(self, held, needed, enough):
        assert held.includes(needed) is enough
        assert principal((held, "main")).may(needed, "main.a.b") is enough
        assert principal((held, "main")).may_somewhere(needed) is enough
        assert principal((held, "*")).may_everywhere(needed) is enough

    def test_the_widest_grant_counts(self):
        both = principal(("reader", "main"), ("admin", "main.air.flights"))
        assert both.may(Role.ADMIN, "main.air.flights")
        assert both.may(Role.READER, "main.air.other")
        assert not both.may(Role.WRITER, "main.air.other")
        assert not both.may_everywhere(Role.READER)
        assert both.scopes(Role.READER) == ("main", "main.air.flights")

    def test_without_authentication_everybody_may_do_everything(self):
        assert ANYBODY.may_everywhere(Role.ADMIN)
        assert ANYBODY.scopes(Role.READER) is None


class Kept:
    """A store of one token, which counts how often it is asked."""

    def __init__(self) -> None:
        self.token: NewToken | None = None
        self.asked = 0

    async def live(self, token_id: str) -> LiveToken | None:
        self.asked += 1
        if self.token is None or self.token.id != token_id:
            return None
        found = Principal(name=self.token.principal, grants=self.token.grants)
        return LiveToken(principal=found, sha256=self.token.sha256)

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

    async def test_the_principal_is_named_by_the_id_where_by_nothing_else(self):
        store = Kept()
        await made(store, principal=None)
        assert store.token.principal == store.token.id

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
    async def test_it_knows_whose_a_token_is(self):
        store = Kept()
        text = await made(store)
        found = await Authenticator(store, monotonic_s=lambda: 0.0).principal(text, address=HERE)
        assert found == Principal(name="etl", grants=(Grant(Role.READER, "*"),))

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

    async def test_what_cannot_be_one_is_not_looked_up(self):
        store = Kept()
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        await authenticator.principal("Robert'); DROP TABLE", address=HERE)
        assert store.asked == 0

    async def test_it_is_asked_for_again_once_the_time_is_over(self):
        store, now = Kept(), [100.0]
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: now[0])
        assert await authenticator.principal(text, address=HERE)
        now[0] += CACHE_S - 0.001
        assert await authenticator.principal(text, address=HERE)
        assert store.asked == 1
        await store.revoke(store.token.id, by=OPERATOR)
        now[0] += 0.001
        assert await authenticator.principal(text, address=HERE) is None
        assert CACHE_S < 5

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
    """Tokens that nobody has, from one address."""

    def limited(self, store: "Kept", now: list[float]) -> Authenticator:
        failures = FailedAuthentications(monotonic_s=lambda: now[0], delay_s=0.0)
        return Authenticator(store, monotonic_s=lambda: now[0], failures=failures)

    async def try_unknown(self, authenticator: Authenticator, *, address: str = HERE) -> None:
        for number in range(BURST):
            unknown = f"tdg_{number:012x}_{'0' * 64}"
            assert await authenticator.principal(unknown, address=address) is None

    async def test_too_many_are_not_looked_up_any_more(self):
        store, now = Kept(), [100.0]
        authenticator = self.limited(store, now)
        await self.try_unknown(authenticator)
        with pytest.raises(Unavailable, match="nothing was done"):
            await authenticator.principal(f"tdg_{'f' * 12}_{'0' * 64}", address=HERE)
        assert store.asked == BURST

    async def test_nobody_else_is_the_worse_for_it(self):
        store, now = Kept(), [100.0]
        text = await made(store)
        authenticator = self.limited(store, now)
        await self.try_unknown(authenticator, address="10.0.0.1")
        assert await authenticator.principal(text, address="10.0.0.2")

    async def test_who_was_valid_there_goes_on(self):
        store, now = Kept(), [100.0]
        text = await made(store)
        authenticator = self.limited(store, now)
        assert await authenticator.principal(text, address=HERE)
        now[0] += CACHE_S + 1
        await self.try_unknown(authenticator)
        assert await authenticator.principal(text, address=HERE)
        now[0] += TRUSTED_S / 2
        assert await authenticator.principal(text, address=HERE)

    async def test_they_are_forgiven_with_time(self):
        store, now = Kept(), [100.0]
        text = await made(store)
        authenticator = self.limited(store, now)
        await self.try_unknown(authenticator)
        with pytest.raises(Unavailable):
            await authenticator.principal(text, address=HERE)
        now[0] += 1 / PER_S
        assert await authenticator.principal(text, address=HERE)

    async def test_all_of_an_ipv6_network_is_one_address(self):
        store, now = Kept(), [100.0]
        authenticator = self.limited(store, now)
        for number in range(BURST):
            unknown = f"tdg_{number:012x}_{'0' * 64}"
            await authenticator.principal(unknown, address=f"2001:db8::{number:x}")
        with pytest.raises(Unavailable):
            await authenticator.principal(f"tdg_{'f' * 12}_{'0' * 64}", address="2001:db8::ffff")
        other = f"tdg_{'e' * 12}_{'0' * 64}"
        assert await authenticator.principal(other, address="2001:db8:0:1::1") is None
        assert await authenticator.principal(other, address="::ffff:10.0.0.1") is None

    async def test_what_is_remembered_is_bounded(self):
        failures = FailedAuthentications(monotonic_s=lambda: 0.0, delay_s=0.0, addresses=2)
        for number in range(5):
            failures.count(f"10.0.0.{number}")
        assert len(failures._of) == 2

"""Roles, scopes and tokens: what they are before anything is asked of them."""

import hashlib

import pytest

from tidegate_service.core import tokens
from tidegate_service.core.access import (
    ANYBODY,
    OPERATOR,
    Caller,
    Grant,
    InvalidScope,
    Principal,
    Role,
)
from tidegate_service.core.tokens import (
    CACHE_S,
    Authenticator,
    InvalidToken,
    LiveToken,
    NewToken,
    TokenRecord,
)

pytestmark = pytest.mark.anyio


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
        assert both.visible() == ("main", "main.air.flights")

    def test_without_authentication_everybody_may_do_everything(self):
        assert ANYBODY.may_everywhere(Role.ADMIN)
        assert ANYBODY.visible() is None


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
        found = await Authenticator(store, monotonic_s=lambda: 0.0).principal(text)
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
            assert await authenticator.principal(other) is None

    async def test_what_cannot_be_one_is_not_looked_up(self):
        store = Kept()
        await Authenticator(store, monotonic_s=lambda: 0.0).principal("Robert'); DROP TABLE")
        assert store.asked == 0

    async def test_it_is_asked_for_again_once_the_time_is_over(self):
        store, now = Kept(), [100.0]
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: now[0])
        assert await authenticator.principal(text)
        now[0] += CACHE_S - 0.001
        assert await authenticator.principal(text)
        assert store.asked == 1
        await store.revoke(store.token.id, by=OPERATOR)
        now[0] += 0.001
        assert await authenticator.principal(text) is None
        assert CACHE_S < 5

    async def test_a_wrong_secret_is_not_helped_by_the_right_one_before(self):
        store = Kept()
        text = await made(store)
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        assert await authenticator.principal(text)
        assert await authenticator.principal(text[:-2] + "00") is None

    async def test_what_it_remembers_is_bounded(self, monkeypatch):
        monkeypatch.setattr(tokens, "CACHED_TOKENS", 2)
        store = Kept()
        authenticator = Authenticator(store, monotonic_s=lambda: 0.0)
        for number in range(5):
            text = await made(store, random=lambda size, n=number: bytes([n]) * size)
            assert await authenticator.principal(text)
        assert len(authenticator._known) <= 2

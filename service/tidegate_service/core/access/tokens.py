"""Bearer tokens: making, listing and revoking them, and telling who sends one.

A token reads `tdg_<id>_<secret>`: an id to find and to name it by, and 256 random bits. Only
the SHA-256 of the whole text is kept, so nobody who reads the index can use what is there; a
slow hash would add nothing to 256 random bits.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidegate_service.core.access.addresses import source_of
from tidegate_service.core.access.failed_authentications import FailedAuthentications
from tidegate_service.core.access.lookups import LiveTokens, Lookups
from tidegate_service.core.access.roles import (
    ANONYMOUS,
    OPERATOR,
    SERVICE,
    Caller,
    Grant,
    Principal,
)

PREFIX = "tdg_"
ID_BYTES = 6
SECRET_BYTES = 32
MAX_PRINCIPAL_LENGTH = 128
CACHE_S = 2.0
"""How long an instance trusts what it knows of a token; a revoked one is refused after that."""
CACHED_TOKENS = 10_000
TRUSTED_S = 600.0
"""So long a token that was valid is looked up before those that nobody is known to have."""

TOKEN_ID = re.compile(rf"[0-9a-f]{{{2 * ID_BYTES}}}\Z")
_TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{{2 * ID_BYTES}}})_[0-9a-f]{{{2 * SECRET_BYTES}}}\Z")
_PRINCIPAL = re.compile(rf"[A-Za-z0-9._@:/-]{{1,{MAX_PRINCIPAL_LENGTH}}}\Z")
_NO_DIGEST = bytes(32)
RESERVED = frozenset(caller.name for caller in (ANONYMOUS, SERVICE, OPERATOR))
"""Principals that the audit trail knows as no token's."""


class InvalidToken(ValueError):
    """What was asked for cannot be a token; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token about to be kept; `sha256` is of its text. Raises `InvalidToken`."""

    id: str
    principal: str
    grants: tuple[Grant, ...]
    sha256: bytes
    lifetime_s: int | None

    def __post_init__(self) -> None:
        if not _PRINCIPAL.match(self.principal):
            raise InvalidToken(
                f"expected a label of 1 to {MAX_PRINCIPAL_LENGTH} ASCII letters, digits and "
                f"'._@:/-', found {self.principal[:80]!r}"
            )
        if self.principal.lower() in RESERVED:
            raise InvalidToken(
                f"expected another label than {', '.join(sorted(RESERVED))}, which the audit trail "
                f"uses for callers without a token, found {self.principal!r}"
            )
        if not self.grants:
            raise InvalidToken("expected at least one role on something, found none")
        if len({grant.scope for grant in self.grants}) != len(self.grants):
            raise InvalidToken("expected one role on each thing, found two on the same")
        if self.lifetime_s is not None and self.lifetime_s <= 0:
            raise InvalidToken(f"expected a time to come, found {self.lifetime_s} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as an operator may see it, whatever became of it."""

    id: str
    principal: str
    grants: tuple[Grant, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    live: bool


class Tokens(LiveTokens, Protocol):
    """Where tokens are kept. Raises `IndexUnavailable` as the index does."""

    async def all(self) -> list[TokenRecord]:
        """Every token there ever was, the newest first."""
        ...

    async def add(self, token: NewToken, *, by: Caller) -> None:
        """Keep a token, and its audit row."""
        ...

    async def revoke(self, token_id: str, *, by: Caller) -> bool:
        """End a token, and keep its audit row. False where there is none or it ended before."""
        ...


async def create(
    tokens: Tokens,
    *,
    principal: str | None,
    grants: tuple[Grant, ...],
    lifetime_s: int | None,
    by: Caller,
    random: Callable[[int], bytes],
) -> str:
    """Make a token and return its text, which is kept nowhere. Without a name, the principal
    is called by the token's id. `random(n)` gives n bytes that nobody can guess. Raises
    `InvalidToken`."""
    token_id = random(ID_BYTES).hex()
    text = f"{PREFIX}{token_id}_{random(SECRET_BYTES).hex()}"
    token = NewToken(
        id=token_id,
        principal=token_id if principal is None else principal,
        grants=grants,
        sha256=_digest(text),
        lifetime_s=lifetime_s,
    )
    await tokens.add(token, by=by)
    return text


@dataclass(frozen=True, slots=True)
class _Known:
    """A token that was valid; its principal is trusted until `until` (monotonic, s)."""

    until: float
    principal: Principal


class Authenticator:
    """Tells whose a token is. What it was told last stands for at most `CACHE_S`."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        monotonic_s: Callable[[], float],
        failures: FailedAuthentications | None = None,
        cached: int = CACHED_TOKENS,
    ) -> None:
        self._tokens = tokens
        self._monotonic_s = monotonic_s
        self._cached = cached
        self._known: dict[bytes, _Known] = {}
        self._failures = failures or FailedAuthentications(monotonic_s=monotonic_s)
        # Two queries at a time at most, which take few of the connections that commits need.
        self._trusted = Lookups(tokens)
        self._strangers = Lookups(tokens)

    async def principal(self, text: str, *, address: str) -> Principal | None:
        """The principal of a live token; None for anything else, after a while where the address
        sends too many of these. `address` is who sends it. Raises `IndexUnavailable`.
        """
        shape = _TOKEN.match(text)
        if shape is None:
            return None
        digest, now = _digest(text), self._monotonic_s()
        known = self._known.get(digest)
        if known is not None and now < known.until:
            return known.principal
        was_valid = known is not None and now < known.until + TRUSTED_S
        lookups = self._trusted if was_valid else self._strangers
        live = await lookups.live(shape.group(1), source=source_of(address))
        # Compared either way: the time it takes says nothing of which ids there are.
        same = hmac.compare_digest(_NO_DIGEST if live is None else live.sha256, digest)
        if live is None or not same:
            self._known.pop(digest, None)
            await self._failures.failed(address)
            return None
        if len(self._known) >= self._cached:
            self._known.clear()
        # From before the question: what it was answered with was true after that.
        self._known[digest] = _Known(now + CACHE_S, live.principal)
        return live.principal


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("ascii")).digest()

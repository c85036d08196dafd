"""Tokens in Postgres."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Interval, Row, and_, cast, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tidegate_service.core.access.audit import Deed
from tidegate_service.core.access.lookups import LiveToken
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.access.tokens import NewToken, TokenRecord
from tidegate_service.index.access.audit import record_token
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.schema.access import token_grants, tokens


class PostgresTokens:
    """Implements `core.access.tokens.Tokens` on an engine of `engine.create_engine`."""

    def __init__(self, engine: AsyncEngine, *, answer_timeout_s: float = 20.0) -> None:
        self._connections = Connections(engine, answer_timeout_s=answer_timeout_s)

    async def live(self, ids: Sequence[str]) -> Mapping[str, LiveToken]:
        rows = await self._connections.read(lambda c: _live(c, ids))
        return {
            of_one[0].id: LiveToken(
                principal=Principal(name=of_one[0].principal, grants=_grants(of_one)),
                sha256=of_one[0].sha256,
            )
            for of_one in _by_token(rows)
        }

    async def all(self) -> list[TokenRecord]:
        rows = await self._connections.read(_all)
        return [_record(of_one) for of_one in _by_token(rows)]

    async def add(self, token: NewToken, *, by: Caller) -> None:
        await self._connections.write(lambda c: _add(c, token, by))

    async def revoke(self, token_id: str, *, by: Caller) -> bool:
        return await self._connections.write(lambda c: _revoke(c, token_id, by))


def _is_live() -> ColumnElement[bool]:
    return and_(
        tokens.c.revoked_at.is_(None),
        or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > func.clock_timestamp()),
    )


def _by_token(rows: Iterable[Row[*tuple[Any, ...]]]) -> Iterable[list[Row[*tuple[Any, ...]]]]:
    by_token: dict[str, list[Row[*tuple[Any, ...]]]] = {}
    for row in rows:
        by_token.setdefault(row.id, []).append(row)
    return by_token.values()


async def _live(connection: AsyncConnection, ids: Sequence[str]) -> list[Row[*tuple[Any, ...]]]:
    query = (
        select(
            tokens.c.id,
            tokens.c.principal,
            tokens.c.sha256,
            token_grants.c.role,
            token_grants.c.scope,
        )
        .join(token_grants, token_grants.c.token_id == tokens.c.id)
        .where(tokens.c.id.in_(ids), _is_live())
    )
    return list(await connection.execute(query))


async def _all(connection: AsyncConnection) -> list[Row[*tuple[Any, ...]]]:
    query = (
        select(tokens, token_grants.c.role, token_grants.c.scope, _is_live().label("live"))
        .join(token_grants, token_grants.c.token_id == tokens.c.id)
        .order_by(tokens.c.created_at.desc(), tokens.c.id, token_grants.c.scope)
    )
    return list(await connection.execute(query))


async def _add(connection: AsyncConnection, token: NewToken, by: Caller) -> None:
    lifetime = None if token.lifetime_s is None else cast(f"{token.lifetime_s} s", Interval)
    await connection.execute(
        insert(tokens).values(
            id=token.id,
            principal=token.principal,
            sha256=token.sha256,
            expires_at=None if lifetime is None else func.now() + lifetime,
        )
    )
    await connection.execute(
        insert(token_grants),
        [
            {"token_id": token.id, "role": grant.role.value, "scope": grant.scope}
            for grant in token.grants
        ],
    )
    await record_token(connection, Deed.CREATE_TOKEN, by=by, token_id=token.id)


async def _revoke(connection: AsyncConnection, token_id: str, by: Caller) -> bool:
    ended = await connection.execute(
        update(tokens)
        .where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(tokens.c.id)
    )
    if ended.one_or_none() is None:
        return False
    await record_token(connection, Deed.REVOKE_TOKEN, by=by, token_id=token_id)
    return True


def _grants(rows: Iterable[Row[*tuple[Any, ...]]]) -> tuple[Grant, ...]:
    return tuple(Grant(Role(row.role), row.scope) for row in rows)


def _record(rows: list[Row[*tuple[Any, ...]]]) -> TokenRecord:
    first = rows[0]
    return TokenRecord(
        id=first.id,
        principal=first.principal,
        grants=_grants(rows),
        created_at=first.created_at,
        expires_at=first.expires_at,
        revoked_at=first.revoked_at,
        live=first.live,
    )

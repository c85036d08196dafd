"""A service that asks for tokens, and tokens for it."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import httpx
import psycopg

from tests.builders.flights import table_body
from tests.service.serving import DocumentedClient
from tidegate_service.core.access import tokens
from tidegate_service.core.access.roles import OPERATOR, Grant, Role
from tidegate_service.core.access.tokens import TokenRecord
from tidegate_service.index.access.tokens import PostgresTokens
from tidegate_service.index.postgres.engine import create_engine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Guarded:
    """`url` of the service, and its database's."""

    url: str
    database_url: str

    def token(
        self, role: str, *scopes: str, label: str | None = None, lifetime_s: int | None = None
    ) -> str:
        """A new token with one role on each scope."""
        return make_token(
            self.database_url,
            *(Grant(Role(role), scope) for scope in scopes),
            label=label,
            lifetime_s=lifetime_s,
        )

    def client(self, token: str | None, *, root: str = "/api/v1") -> httpx.Client:
        """A client that sends the token and holds every answer against the document."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return DocumentedClient(base_url=f"{self.url}{root}", headers=headers, timeout=40.0)

    def table(self, name: str, **fields: object) -> None:
        """A new table."""
        with self.client(self.token("admin", "*")) as client:
            answer = client.post("/tables", json=table_body(name, **fields))
            assert answer.status_code == 201, answer.text


def make_token(
    database_url: str, *grants: Grant, label: str | None = None, lifetime_s: int | None = None
) -> str:
    return _with_tokens(
        database_url,
        lambda store: tokens.create(
            store,
            principal=label,
            grants=grants,
            lifetime_s=lifetime_s,
            by=OPERATOR,
            random=secrets.token_bytes,
        ),
    )


def revoke_token(database_url: str, token: str) -> bool:
    return _with_tokens(database_url, lambda store: store.revoke(id_of(token), by=OPERATOR))


def all_tokens(database_url: str) -> list[TokenRecord]:
    return _with_tokens(database_url, lambda store: store.all())


def id_of(token: str) -> str:
    return token.split("_")[1]


def rows(database_url: str, query: str, *values: object) -> list[tuple[object, ...]]:
    """What a query finds."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(query, values).fetchall()


def _with_tokens(database_url: str, work: Callable[[PostgresTokens], object]) -> T:
    async def main() -> T:
        engine = create_engine(database_url)
        try:
            return await work(PostgresTokens(engine))
        finally:
            await engine.dispose()

    return asyncio.run(main())

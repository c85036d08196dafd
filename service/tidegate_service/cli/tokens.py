"""`tidegate token create|list|revoke`: straight on the index's database, beside the service.

Not over HTTP: whoever may make tokens has the database's own credentials, and no request, by
whatever token, can make another.
"""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from tidegate_service import logs
from tidegate_service.cli.options import Config, fail, setting, settings_from
from tidegate_service.cli.tables import print_rows
from tidegate_service.core.access import tokens
from tidegate_service.core.access.roles import OPERATOR, Grant, InvalidScope, Role
from tidegate_service.core.access.tokens import TokenRecord, Tokens
from tidegate_service.database import CannotStart
from tidegate_service.settings import Settings

cli = typer.Typer(help="Make, list and revoke the tokens of a service.", no_args_is_help=True)

T = TypeVar("T")

_LIFETIME = re.compile(r"([1-9][0-9]{0,6})([smhd])\Z")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}

DataDir = Annotated[Path | None, setting("data_dir")]
DatabaseUrl = Annotated[str | None, setting("database_url")]


@cli.command()
def create(
    *,
    role: Annotated[
        list[Role],
        typer.Option(help="What the token may do; repeat it with --on, in pairs, for more."),
    ],
    on: Annotated[
        list[str],
        typer.Option(
            help="Where: '*', a catalog, catalog.schema or catalog.schema.table.", metavar="SCOPE"
        ),
    ],
    expires: Annotated[
        str | None, typer.Option(help="How long it lasts: 30d, 12h, 90m. By default for ever.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Whom it is for. The audit trail and the limits go by it; a second token for the "
            "same one replaces the first without a gap."
        ),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a token and print it: once, and nowhere else."""
    grants = _grants(role, on)
    lifetime_s = None if expires is None else _seconds(expires)

    async def make(store: Tokens) -> str:
        return await tokens.create(
            store,
            principal=label,
            grants=grants,
            lifetime_s=lifetime_s,
            by=OPERATOR,
            random=secrets.token_bytes,
        )

    try:
        typer.echo(_run(_settings(config, data_dir, database_url), make))
    except tokens.InvalidToken as error:
        fail(str(error))


@cli.command("list")
def list_tokens(
    *, config: Config = None, data_dir: DataDir = None, database_url: DatabaseUrl = None
) -> None:
    """Every token, the newest first, without its secret."""
    found = _run(_settings(config, data_dir, database_url), lambda store: store.all())
    print_rows(
        ("ID", "LABEL", "RIGHTS", "CREATED", "EXPIRES", "STATE"),
        [
            (
                token.id,
                token.principal,
                ", ".join(f"{grant.role} on {grant.scope}" for grant in token.grants),
                _shown(token.created_at),
                "never" if token.expires_at is None else _shown(token.expires_at),
                _state(token),
            )
            for token in found
        ],
    )


@cli.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `token list` shows it.")],
    config: Config = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """End a token. Every instance refuses it within 5 seconds."""
    if not tokens.TOKEN_ID.match(token_id):
        fail(f"expected the id of a token, {2 * tokens.ID_BYTES} hex digits; `token list` has them")
    settings = _settings(config, data_dir, database_url)
    if not _run(settings, lambda store: store.revoke(token_id, by=OPERATOR)):
        fail(f"there is no token {token_id} that could be revoked")
    typer.echo(f"the token {token_id} is revoked")


def _settings(config: Path | None, data_dir: Path | None, database_url: str | None) -> Settings:
    settings = settings_from({"data_dir": data_dir, "database_url": database_url}, config)
    logs.configure(settings.log_level)
    return settings


def _run(settings: Settings, work: Callable[[Tokens], Awaitable[T]]) -> T:
    from tidegate_service import app  # noqa: PLC0415

    async def main() -> T:
        async with app.open_tokens(settings) as store:
            return await work(store)

    try:
        return asyncio.run(main())
    except CannotStart as error:
        fail(str(error))


def _grants(roles: list[Role], scopes: list[str]) -> tuple[Grant, ...]:
    if len(roles) != len(scopes):
        fail(f"expected as many --role as --on, found {len(roles)} and {len(scopes)}")
    try:
        return tuple(Grant(role, scope.lower()) for role, scope in zip(roles, scopes, strict=True))
    except InvalidScope as error:
        fail(f"--on: {error}")


def _seconds(text: str) -> int:
    lifetime = _LIFETIME.match(text)
    if lifetime is None:
        fail(f"--expires: expected a number of s, m, h or d, like 30d; found {text!r}")
    return int(lifetime.group(1)) * _UNIT_S[lifetime.group(2)]


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")


def _state(token: TokenRecord) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.live else "expired"

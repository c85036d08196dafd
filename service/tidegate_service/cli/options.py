"""Options that commands share, and settings from them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

import typer

from tidegate_service.settings import (
    CONFIG_VARIABLE,
    InvalidSettings,
    Settings,
    env_name,
    flag_name,
    load,
    unknown_variables,
)

Config: TypeAlias = Annotated[
    Path | None,
    typer.Option(envvar=CONFIG_VARIABLE, help="Settings in a TOML file.", show_default=False),
]


def setting(field: str) -> object:
    """The flag of a setting; its help is the setting's own description.

    typer reads no variable for it: `settings.load` does, and knows where a value came from.
    """
    description = Settings.model_fields[field].description or ""
    usual = "--" + field.replace("_", "-")
    # typer makes the usual names itself, with the --no-* of a switch.
    names = () if flag_name(field) == usual else (flag_name(field),)
    option: object = typer.Option(
        *names, help=f"{description} [{env_name(field)}]", show_default=False
    )
    return option


def settings_from(flags: Mapping[str, Any], config: Path | None) -> Settings:
    """The settings of this process, or the end of it with what is wrong with them."""
    given = {name: value for name, value in flags.items() if value is not None}
    for name in unknown_variables(os.environ):
        typer.echo(f"tidegate: warning: {name} is set but is not a setting", err=True)
    try:
        return load(given, config=config)
    except InvalidSettings as error:
        fail(str(error))


def own_url(settings: Settings) -> str:
    """Where a service with these settings is asked on its own machine."""
    # Whoever listens everywhere listens on loopback too.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def fail(message: str) -> NoReturn:
    """Say why on standard error, a line each, and exit with status 1."""
    for line in message.splitlines():
        typer.echo(f"tidegate: {line}", err=True)
    raise typer.Exit(1)

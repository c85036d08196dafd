"""`tidegate serve`, `migrate` and `openapi`.

The service is imported by the commands that run it: that takes longer than the others run.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from tidegate_service import logs
from tidegate_service.cli import tables
from tidegate_service.cli.options import Config, setting, settings_from

cli = typer.Typer(
    name="tidegate",
    help="Tidegate: a commit coordinator for Delta Lake tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
cli.add_typer(tables.cli, name="table")


def main() -> None:
    """The entry point of the script `tidegate`."""
    cli()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tidegate {version('tidegate')}")
        raise typer.Exit


@cli.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@cli.command()
def serve(
    *,
    config: Config = None,
    host: Annotated[str | None, setting("host")] = None,
    port: Annotated[int | None, setting("port")] = None,
    data_dir: Annotated[Path | None, setting("data_dir")] = None,
    database_url: Annotated[str | None, setting("database_url")] = None,
    database_pool_size: Annotated[int | None, setting("database_pool_size")] = None,
    migrate: Annotated[bool | None, setting("migrate")] = None,
    warehouse: Annotated[str | None, setting("warehouse")] = None,
    allowed_locations: Annotated[str | None, setting("allowed_locations")] = None,
    max_requests: Annotated[int | None, setting("max_requests")] = None,
    max_body_bytes: Annotated[int | None, setting("max_body_bytes")] = None,
    deadline_seconds: Annotated[float | None, setting("deadline_seconds")] = None,
    publish_interval_seconds: Annotated[float | None, setting("publish_interval_seconds")] = None,
    log_level: Annotated[str | None, setting("log_level")] = None,
) -> None:
    """Run the service. Without any setting it starts an embedded Postgres and keeps tables
    under ./tidegate-data."""
    flags = {name: value for name, value in locals().items() if name != "config"}
    settings = settings_from(flags, config)
    logs.configure(settings.log_level)
    from tidegate_service.cli.serving import serve_until_signalled  # noqa: PLC0415

    serve_until_signalled(settings)


@cli.command()
def migrate(
    *,
    config: Config = None,
    data_dir: Annotated[Path | None, setting("data_dir")] = None,
    database_url: Annotated[str | None, setting("database_url")] = None,
) -> None:
    """Bring the schema of the index up to date. Safe while older instances serve."""
    settings = settings_from({"data_dir": data_dir, "database_url": database_url}, config)
    logs.configure(settings.log_level)
    from tidegate_service.cli.serving import bring_up_to_date  # noqa: PLC0415

    typer.echo(f"the schema is at revision {bring_up_to_date(settings)}")


@cli.command()
def openapi() -> None:
    """Print the description of the HTTP API (OpenAPI 3.1, JSON)."""
    from tidegate_service.app import application  # noqa: PLC0415

    typer.echo(json.dumps(application().openapi(), indent=2))

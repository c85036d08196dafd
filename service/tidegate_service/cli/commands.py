"""`tidegate serve`, `migrate` and `openapi`.

The service is imported by the commands that run it: that takes longer than the others run.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from tidegate_service import logs
from tidegate_service.cli import forgotten, maintenance, tables, tokens, vacuum
from tidegate_service.cli.http import check_ready
from tidegate_service.cli.options import Config, own_url, setting, settings_from

cli = typer.Typer(
    name="tidegate",
    help="Tidegate: a commit coordinator for Delta Lake tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
cli.add_typer(tables.cli, name="table")
cli.add_typer(tokens.cli, name="token")
cli.command()(maintenance.verify)
cli.command()(maintenance.rebuild)
cli.command()(vacuum.vacuum)
tables.cli.command()(maintenance.release)
tables.cli.command()(maintenance.checkpoint)
tables.cli.command()(maintenance.generate_manifest)
tables.cli.command()(forgotten.forgotten)
tables.cli.command()(forgotten.delete_forgotten)


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
    auth: Annotated[str | None, setting("auth")] = None,
    host: Annotated[str | None, setting("host")] = None,
    allowed_hosts: Annotated[str | None, setting("allowed_hosts")] = None,
    trusted_proxies: Annotated[str | None, setting("trusted_proxies")] = None,
    port: Annotated[int | None, setting("port")] = None,
    workers: Annotated[int | None, setting("workers")] = None,
    data_dir: Annotated[Path | None, setting("data_dir")] = None,
    data_dir_mode: Annotated[str | None, setting("data_dir_mode")] = None,
    database_url: Annotated[str | None, setting("database_url")] = None,
    database_pool_size: Annotated[int | None, setting("database_pool_size")] = None,
    migrate: Annotated[bool | None, setting("migrate")] = None,
    warehouse: Annotated[str | None, setting("warehouse")] = None,
    allowed_locations: Annotated[str | None, setting("allowed_locations")] = None,
    storage_options: Annotated[list[str] | None, setting("storage_options")] = None,
    max_connections: Annotated[int | None, setting("max_connections")] = None,
    max_requests: Annotated[int | None, setting("max_requests")] = None,
    max_requests_per_principal: Annotated[int | None, setting("max_requests_per_principal")] = None,
    max_waiting_per_table: Annotated[int | None, setting("max_waiting_per_table")] = None,
    keep_version_seconds: Annotated[float | None, setting("keep_version_seconds")] = None,
    max_body_bytes: Annotated[int | None, setting("max_body_bytes")] = None,
    max_stream_bytes: Annotated[int | None, setting("max_stream_bytes")] = None,
    max_stream_actions: Annotated[int | None, setting("max_stream_actions")] = None,
    max_log_file_bytes: Annotated[int | None, setting("max_log_file_bytes")] = None,
    max_log_files: Annotated[int | None, setting("max_log_files")] = None,
    max_checkpoint_readers: Annotated[int | None, setting("max_checkpoint_readers")] = None,
    deadline_seconds: Annotated[float | None, setting("deadline_seconds")] = None,
    long_deadline_seconds: Annotated[float | None, setting("long_deadline_seconds")] = None,
    max_read_age_seconds: Annotated[float | None, setting("max_read_age_seconds")] = None,
    publish_interval_seconds: Annotated[float | None, setting("publish_interval_seconds")] = None,
    max_unpublished_versions: Annotated[int | None, setting("max_unpublished_versions")] = None,
    upkeep_share: Annotated[float | None, setting("upkeep_share")] = None,
    max_commits_after_checkpoint: Annotated[
        int | None, setting("max_commits_after_checkpoint")
    ] = None,
    commits_to_compact: Annotated[int | None, setting("commits_to_compact")] = None,
    hooks: Annotated[str | None, setting("hooks")] = None,
    table_hooks: Annotated[str | None, setting("table_hooks")] = None,
    otlp_endpoint: Annotated[str | None, setting("otlp_endpoint")] = None,
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
def health(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="TIDEGATE_URL", help="Where the service listens; by default as its settings say."
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, max=60, help="In seconds.")] = 5.0,
    config: Config = None,
) -> None:
    """Ask a service whether it can take a commit; the exit status says it."""
    target = url or own_url(settings_from({}, config))
    check_ready(target, timeout_s=timeout)
    typer.echo(f"{target} is ready")


@cli.command()
def openapi() -> None:
    """Print the description of the HTTP API (OpenAPI 3.1, JSON)."""
    from tidegate_service.app import application  # noqa: PLC0415

    typer.echo(json.dumps(application().openapi(), indent=2))

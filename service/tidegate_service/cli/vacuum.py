"""`tidegate vacuum`: over HTTP, with its progress on standard error."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidegate_service.cli.http import lines
from tidegate_service.cli.maintenance import TableName
from tidegate_service.cli.options import fail
from tidegate_service.cli.tables import DEFAULT_URL, AsJson, Url, printable
from tidegate_service.core.errors import StorageUnavailable

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d|w)")


def vacuum(
    table: TableName,
    *,
    retain: Annotated[
        str | None,
        typer.Option(
            help="How long removed files are kept, such as 168h or 7d; by default as long as the "
            "table says."
        ),
    ] = None,
    allow_shorter: Annotated[
        bool, typer.Option("--allow-shorter", help="Also where the table says longer.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted, and delete nothing.")
    ] = False,
    inventory: Annotated[
        Path | None,
        typer.Option(
            help="A Parquet file of what there is, in the place of listing the store: path, "
            "length, isDir, modificationTime (ms)."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Delete data files that no version within the retention names. Exits with 1 where it failed.

    It can be ended at any time, and begun again."""
    body = {
        "retain_ms": None if retain is None else _milliseconds(retain),
        "allow_shorter": allow_shorter,
        "dry_run": dry_run,
    }
    last: dict[str, Any] = {}
    path = f"/tables/{quote(table, safe='')}/vacuum"
    more = None if inventory is None else _listed_in(inventory)
    for line in lines(url, "POST", path, body, more=more):
        last = line
        if as_json:
            typer.echo(json.dumps(line))
        else:
            _show(line)
    if last.get("stage") == "failed":
        fail(f"{last['code']}: {last['detail']}")
    if last.get("stage") != "ended":
        fail("it broke off; what was deleted is gone, and the rest stays: call it again")
    if not as_json:
        _show_end(last, dry_run=dry_run)


def _listed_in(inventory: Path) -> Iterator[bytes]:
    """Its rows as lines. Ends the process where it is no such file."""
    # Importing it takes longer than other commands run.
    from tidegate_service.storage.inventories import inventory_rows  # noqa: PLC0415

    try:
        for rows in inventory_rows(inventory):
            yield b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    except StorageUnavailable as error:
        fail(error.detail)


def _show(line: dict[str, Any]) -> None:
    for warning in line.get("warnings", ()):
        typer.echo(f"warning: {printable(warning)}", err=True)
    for path in line.get("paths", ()):
        typer.echo(printable(path))
    stage = line.get("stage")
    if stage == "logs":
        typer.echo(f"{line.get('logs', 0)} logs of other tables looked at", err=True)
    elif stage == "listing":
        typer.echo(f"{line.get('listed', 0)} files looked at", err=True)
    elif stage == "deleting":
        deleted, found = line.get("deleted", 0), line.get("found", 0)
        typer.echo(f"{deleted} of {found} files deleted", err=True)


def _show_end(last: dict[str, Any], *, dry_run: bool) -> None:
    found, size = last.get("found", 0), last.get("found_bytes", 0)
    if dry_run:
        typer.echo(f"{found} files of {size} bytes would be deleted", err=True)
        return
    typer.echo(
        f"{last.get('deleted', 0)} files of {size} bytes and {last.get('folders', 0)} folders "
        f"deleted, {last.get('listed', 0)} looked at; the log says so in version {last['version']}"
    )


def _milliseconds(text: str) -> int:
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        fail(f"expected a time such as 168h, 7d or 30m, found {text!r}")
    return int(found[1]) * _UNITS_MS[found[2]]

"""`tidegate verify`, `tidegate rebuild` and `tidegate table release`: over HTTP, too."""

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidegate_service.cli.http import call
from tidegate_service.cli.tables import DEFAULT_URL, AsJson, Url, print_head, print_rows

TableName = Annotated[str, typer.Argument(help="Its full name or id.")]


def verify(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Compare a table's index with its log, version by version. Exits with 1 where they differ."""
    differences: list[dict[str, Any]] = []
    counts = {"versions": 0, "cleaned_up": 0, "not_ingested": 0}
    next_version: int | None = None
    while True:
        query = "" if next_version is None else f"?from_version={next_version}"
        page = call(url, "GET", f"/tables/{quote(table, safe='')}/verify{query}")
        differences += page["differences"]
        counts["versions"] += page["through_version"] - page["from_version"] + 1
        counts["cleaned_up"] += page["cleaned_up"]
        counts["not_ingested"] = page["not_ingested"]
        next_version = page["next_version"]
        if next_version is None:
            break
    if as_json:
        typer.echo(json.dumps({**counts, "differences": differences}, indent=2))
    else:
        _print(counts, differences)
    if differences:
        raise typer.Exit(1)


def _print(counts: dict[str, int], differences: list[dict[str, Any]]) -> None:
    if differences:
        shown = [
            ("the table" if one["version"] is None else one["version"], one["kind"], one["detail"])
            for one in differences
        ]
        print_rows(("VERSION", "IN", "WHAT DIFFERS"), shown)
    if counts["cleaned_up"]:
        typer.echo(f"{counts['cleaned_up']} versions are gone from the log, under a checkpoint")
    if counts["not_ingested"]:
        typer.echo(f"{counts['not_ingested']} foreign versions wait for the next read")
    verdict = f"{len(differences)} differences" if differences else "no difference"
    typer.echo(f"{counts['versions']} versions compared: {verdict}")


def rebuild(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Make a table's index anew from its log. Commits to it wait meanwhile."""
    rebuilt = call(url, "POST", f"/tables/{quote(table, safe='')}/rebuild")
    _show(rebuilt, as_json)
    if rebuilt["lost"] and not as_json:
        shown = [(one["version"], one["transaction_id"] or "none") for one in rebuilt["lost"]]
        print_rows(("LOST VERSION", "TRANSACTION"), shown)
    unknown = rebuilt["unknown_ids"]
    if unknown is not None and not as_json:
        typer.echo(
            f"versions {unknown['first_version']} to {unknown['last_version']} were cleaned up "
            "after the backup: their transaction ids are unknown, and may land again"
        )


def release(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Have a quarantined table take commits again, once what it was quarantined for is mended."""
    _show(call(url, "POST", f"/tables/{quote(table, safe='')}/release"), as_json)


def checkpoint(
    table: TableName,
    version: Annotated[
        int | None, typer.Option(min=0, help="Of which version; the latest one by default.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Write a checkpoint, so that readers of the table's log start from it."""
    body = {} if version is None else {"version": version}
    written = call(url, "POST", f"/tables/{quote(table, safe='')}/checkpoint", body)
    if as_json:
        typer.echo(json.dumps(written, indent=2))
        return
    typer.echo(
        f"version {written['version']}: {written['kind']}, {written['num_actions']} actions, "
        f"{written['files_written']} of {written['files']} files written, "
        f"{written['bytes_written']} of {written['bytes']} bytes, {written['seconds']} s"
    )


def generate_manifest(table: TableName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Write symlink manifests, for readers that know nothing of Delta."""
    written = call(url, "POST", f"/tables/{quote(table, safe='')}/manifest")
    if as_json:
        typer.echo(json.dumps(written, indent=2))
        return
    typer.echo(
        f"version {written['version']}: {written['manifests']} manifests of {written['files']} "
        f"files, {written['removed']} removed"
    )


def _show(head: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(head, indent=2))
    else:
        print_head(head)

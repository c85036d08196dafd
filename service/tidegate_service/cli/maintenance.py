"""`tidegate verify`, `tidegate rebuild` and `tidegate table release`: over HTTP, too."""

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from tidegate_service.cli.http import call, lines
from tidegate_service.cli.options import fail
from tidegate_service.cli.tables import DEFAULT_URL, AsJson, Url, print_head, print_rows

TableName = Annotated[str, typer.Argument(help="Its full name or id.")]


def verify(
    table: TableName,
    *,
    files: Annotated[
        bool,
        typer.Option("--files", help="Also look for the data files of the latest version."),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Compare a table's index with its log, version by version. Exits with 1 where they differ, or
    where a data file that was looked for is missing or has another size."""
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
    found: dict[str, Any] = {**counts, "differences": differences}
    if not as_json:
        _print(counts, differences)
    seen: dict[str, Any] = {"stage": "ended", "bad": []}
    try:
        if files:
            found["data_files"] = seen
            _look_for_files(table, url, seen)
    finally:
        # Also what was found until it broke off.
        if as_json:
            typer.echo(json.dumps(found, indent=2))
        elif files:
            _print_files(seen)
    if seen["stage"] == "failed":
        fail(f"not all files were looked for: {seen['code']}: {seen['detail']}")
    if differences or seen["bad"]:
        raise typer.Exit(1)


def _look_for_files(table: str, url: str, seen: dict[str, Any]) -> None:
    """Put into `seen` what each line of the answer says. Ends the process where it breaks off."""
    seen["stage"] = "looking"
    for line in lines(url, "GET", f"/tables/{quote(table, safe='')}/verify/files", None):
        bad: list[object] = seen["bad"]
        bad += line["bad"]
        seen |= {**line, "bad": bad}
    if seen["stage"] == "looking":
        fail("not all files were looked for: the answer broke off")


def _print_files(seen: dict[str, Any]) -> None:
    if seen["bad"]:
        shown = [(each["path"], each["detail"]) for each in seen["bad"]]
        print_rows(("DATA FILE", "WHAT IS WRONG"), shown)
    if seen["stage"] != "ended":
        return
    if seen["skipped"]:
        typer.echo(f"{seen['skipped']} files were not looked for (docs/maintenance.md)")
    vectors = seen["deletion_vectors"]
    of_vectors = f" and those of {vectors} deletion vectors" if vectors else ""
    verdict = f"{len(seen['bad'])} missing or damaged" if seen["bad"] else "none is missing"
    looked_for = f"{seen['files']} files of version {seen['version']}{of_vectors} looked for"
    typer.echo(f"{looked_for}: {verdict}")


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
            "before the index had read them: their transaction ids are unknown, and may land again"
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

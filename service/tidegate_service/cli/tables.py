"""`tidegate table list|show|create|register|history`: a running service, asked over HTTP."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, urlencode

import typer

from tidegate_service.cli.http import call
from tidegate_service.cli.options import fail

cli = typer.Typer(help="Look at the tables of a running service.", no_args_is_help=True)

Url: TypeAlias = Annotated[
    str, typer.Option(envvar="TIDEGATE_URL", help="Where the service listens.")
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the service's own JSON answer.")
]
_NO_SCHEMA = '{"fields":[]}'
DEFAULT_URL = "http://127.0.0.1:8720"

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@cli.command("list")
def list_tables(
    prefix: Annotated[str, typer.Argument(help="Only names that start with this.")] = "",
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Every table: name, kind, version, files, bytes."""
    tables: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        query = {"prefix": prefix, "limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = call(url, "GET", f"/tables?{urlencode(query)}")
        tables += page["tables"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    if as_json:
        typer.echo(json.dumps(tables, indent=2))
        return
    print_rows(
        ("NAME", "KIND", "VERSION", "FILES", "BYTES", "STATE"),
        [
            (
                table["name"],
                _kind(table),
                table["latest_version"],
                table["num_files"],
                table["size_bytes"],
                table["state"],
            )
            for table in tables
        ],
    )


@cli.command()
def show(
    table: Annotated[str, typer.Argument(help="Its full name or id.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """One table's head, and how its log is kept up."""
    path = f"/tables/{quote(table, safe='')}"
    head = call(url, "GET", path)
    upkeep = call(url, "GET", f"{path}/upkeep")
    if as_json:
        typer.echo(json.dumps({**head, "upkeep": upkeep}, indent=2))
    else:
        print_head(head, upkeep=upkeep_rows(upkeep))


@cli.command()
def create(
    *,
    name: Annotated[str, typer.Argument(help="catalog.schema.table")],
    schema: Annotated[
        Path,
        typer.Option(
            help="A file with the schema: Delta's struct JSON; - is standard input.",
            allow_dash=True,
        ),
    ],
    partition_by: Annotated[
        list[str] | None, typer.Option(help="A partition column; may be repeated.")
    ] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option("--property", help="name=value; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    comment: Annotated[str | None, typer.Option(help="What the table is about.")] = None,
    location: Annotated[str | None, typer.Option(help="A URL, as in docs/storage.md.")] = None,
    catalog_managed: Annotated[
        bool, typer.Option("--catalog-managed", help="Commits are ratified by the service.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Create an empty table."""
    properties = dict(_pair(text) for text in property_ or ())
    body = {
        "name": name,
        "schema": _schema(schema),
        "partition_columns": partition_by or [],
        "properties": properties,
        "comment": comment,
        "location": location,
        "catalog_managed": catalog_managed,
    }
    head = call(url, "POST", "/tables", body)
    for warning in head.get("warnings", []):
        typer.echo(f"warning: {warning}", err=True)
    if as_json:
        typer.echo(json.dumps(head, indent=2))
    else:
        print_head(head)


@cli.command()
def register(
    name: Annotated[str, typer.Argument(help="catalog.schema.table")],
    location: Annotated[
        str, typer.Argument(help="The URL of the folder that its _delta_log is in.")
    ],
    *,
    catalog_managed: Annotated[
        bool,
        typer.Option("--catalog-managed", help="It was catalog-managed here, and forgotten."),
    ] = False,
    by_marks: Annotated[
        bool,
        typer.Option("--by-marks", help="With that: a restore lost it, and its log says it was."),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Adopt a Delta table that exists."""
    body = {
        "name": name,
        "location": location,
        "catalog_managed": catalog_managed,
        "by_marks": by_marks,
    }
    head = call(url, "POST", "/tables/register", body)
    if as_json:
        typer.echo(json.dumps(head, indent=2))
    else:
        print_head(head)


@cli.command()
def history(
    table: Annotated[str, typer.Argument(help="Its full name or id.")],
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most versions shown.")] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """A table's versions, newest first."""
    page = call(url, "GET", f"/tables/{quote(table, safe='')}/commits?limit={limit}")
    if as_json:
        typer.echo(json.dumps(page["commits"], indent=2))
        return
    print_rows(
        ("VERSION", "TIME", "OPERATION", "WRITER", "REBASED OVER", "ADDED", "REMOVED"),
        [
            (
                commit["version"],
                time_text(commit["timestamp"]),
                commit["operation"] or "",
                commit["engine_info"] or "",
                commit["rebased_over"],
                commit["metrics"]["num_added_files"],
                commit["metrics"]["num_removed_files"],
            )
            for commit in page["commits"]
        ],
    )


def _schema(path: Path) -> object:
    try:
        text = typer.get_text_stream("stdin").read() if str(path) == "-" else path.read_text()
        return json.loads(text)
    except (OSError, ValueError) as error:
        fail(f"the schema in {path} cannot be read: {error}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        fail(f"expected --property NAME=VALUE, found {text!r}")
    return name, value


def print_head(head: dict[str, Any], *, upkeep: Sequence[tuple[str, str]] = ()) -> None:
    """A table's head as rows of name and value."""
    metadata = head["metadata"]
    rows = [
        ("name", head["name"]),
        ("id", head["id"]),
        ("kind", _kind(head)),
        ("state", head["state"] + (f": {head['state_reason']}" if head["state_reason"] else "")),
        ("location", head["location"]),
        ("version", f"{head['latest_version']} (published {head['published_version']})"),
        ("changed", time_text(head["latest_timestamp"])),
        ("files", f"{head['num_files']} ({head['size_bytes']} bytes)"),
        *upkeep,
        ("partitioned by", ", ".join(metadata.get("partitionColumns") or ()) or "nothing"),
        *(
            ("property", f"{name}={value}")
            for name, value in sorted((metadata.get("configuration") or {}).items())
        ),
        *(
            ("column", f"{field['name']} {_type(field['type'])}")
            for field in json.loads(metadata.get("schemaString") or _NO_SCHEMA)["fields"]
        ),
    ]
    print_rows(None, rows)


def upkeep_rows(upkeep: dict[str, Any]) -> list[tuple[str, str]]:
    """How a table's log is kept up, as rows of name and value."""

    def row(name: str, version: str, at: str) -> tuple[str, str]:
        if upkeep[version] is None:
            return name, "none yet"
        return name, f"{upkeep[version]}, {time_text(upkeep[at])}"

    return [
        row("checkpoint", "checkpoint_version", "checkpoint_at"),
        ("commits after it", str(upkeep["commits_after_checkpoint"])),
        row("checksum", "checksum_version", "checksum_at"),
        row("cleaned up before", "cleaned_up_before", "clean_up_at"),
        row("compacted up to", "compaction_version", "compaction_at"),
        row("dropped from the index before", "dropped_before", "dropped_at"),
        row("vacuumed", "vacuum_version", "vacuum_at"),
        ("to be opened", _opening(upkeep["opening"])),
        *((f"hook {name}", _hook(hook)) for name, hook in upkeep["hooks"].items()),
        *(("trouble", f"{kind}: {why}") for kind, why in upkeep["troubles"].items()),
    ]


def _opening(opening: dict[str, Any] | None) -> str:
    if opening is None:
        return "not known: the store does not say"
    commits = f"{opening['commits']} commits of {opening['commit_bytes']} bytes"
    if opening["checkpoint_version"] is None:
        return commits
    size = opening["checkpoint_bytes"]
    of_bytes = "" if size is None else f" of {size} bytes"
    return f"checkpoint {opening['checkpoint_version']}{of_bytes}, {commits}"


def _hook(hook: dict[str, Any]) -> str:
    done = "nothing yet" if hook["version"] is None else str(hook["version"])
    return f"{done}, {hook['commits_behind']} behind, {hook['failures']} failures"


def _kind(table: dict[str, Any]) -> str:
    return "catalog-managed" if table["catalog_managed"] else "plain"


def _type(kind: object) -> str:
    return kind if isinstance(kind, str) else json.dumps(kind)


def time_text(milliseconds: int) -> str:
    """A moment in UTC; one that no calendar has as its number."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return moment.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00") + " UTC"


def printable(text: str) -> str:
    """The text with what could steer a terminal escaped."""
    return _UNPRINTABLE.sub(_shown, text)


def print_rows(titles: Sequence[str] | None, rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; what could steer a terminal is shown escaped."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    lines = cells if titles is None else [list(titles), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo(padded.rstrip())


def _shown(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")

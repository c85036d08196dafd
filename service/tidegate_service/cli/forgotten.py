"""`tidegate table forgotten` and `tidegate table delete-forgotten`: over HTTP, too."""

import json
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from tidegate_service.cli.http import call
from tidegate_service.cli.options import fail
from tidegate_service.cli.tables import DEFAULT_URL, AsJson, Url, print_rows, time_text


def forgotten(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Tables that were forgotten, and whose transaction ids are kept."""
    tables: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        query = {"limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = call(url, "GET", f"/forgotten-tables?{urlencode(query)}")
        tables += page["tables"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    if as_json:
        typer.echo(json.dumps(tables, indent=2))
        return
    columns = ("id", "name", "latest_version", "location")
    print_rows(
        ("ID", "NAME", "VERSION", "LOCATION", "FORGOTTEN"),
        [
            (*(table[column] for column in columns), time_text(table["forgotten_at"]))
            for table in tables
        ],
    )


def delete_forgotten(
    table_id: Annotated[str, typer.Argument(help="Its id, of `tidegate table forgotten`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it.")] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Delete for good what is kept of a forgotten table. Its files stay."""
    if not yes:
        fail(
            "this cannot be undone: transactions that landed or were aborted may land again where "
            "the log does not hold them, a catalog-managed table can never be registered again, "
            "and late writes of the table are not looked for at its place any more; say --yes to "
            "do it"
        )
    call(url, "DELETE", f"/forgotten-tables/{quote(table_id, safe='')}")
    typer.echo(f"nothing is kept of {table_id} any more")

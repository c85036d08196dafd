"""Symlink manifests are those that Delta Spark generates of the same version."""

import httpx

from tests.interop.tables import append, folder_of
from tidegate import Table

WRITERS = ["plain", "a b", "a/b", "50%", "x=1", "a:b", "Ünïcödé", "[q]", "#?*", "..", "{c}^"]


def manifests(table: Table) -> dict[str, list[str]]:
    """The lines of each by its folder. Hadoop writes local URLs with one slash."""
    root = folder_of(table) / "_symlink_format_manifest"
    return {
        str(file.parent.relative_to(root)): sorted(
            line.replace("file:///", "file:/") for line in file.read_text().splitlines()
        )
        for file in root.rglob("manifest")
    }


def generated(server: str, table: Table) -> dict[str, list[str]]:
    url = f"{server}/api/v1/tables/{table.name}/manifest"
    answer = httpx.post(url, headers={"content-type": "application/json"}, timeout=60)
    assert answer.status_code == 200, answer.text
    return manifests(table)


def test_they_are_delta_sparks(spark, table, shared_server):
    rows = "(NULL, 99, 1)"
    for number, writer in enumerate(WRITERS):
        # In a statement, braces are doubled.
        rows += f", ('{writer}', {number}, 0)".replace("{", "{{").replace("}", "}}")
    spark.sql(f"INSERT INTO {{table}} VALUES {rows}", table)
    append(table, "ours", range(4))
    ours = generated(shared_server, table)
    assert len(ours) == len(WRITERS) + 2
    spark.sql("GENERATE symlink_format_manifest FOR TABLE {table}", table)
    assert manifests(table) == ours

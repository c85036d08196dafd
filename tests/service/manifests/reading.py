"""Manifests as their readers see them, beside the table's log, which is replayed here anew."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from tests.service.world import World
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord

ENABLED = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
Partitions = dict[tuple[tuple[str, str | None], ...], list[str]]
"""Files by the values of their partition."""
NULL = "__HIVE_DEFAULT_PARTITION__"


def folder(table: TableRecord) -> Path:
    return Path(table.location.removeprefix("file://")) / "_symlink_format_manifest"


def manifests(table: TableRecord) -> dict[str, list[str]]:
    """The lines of each manifest by its folder, in their order."""
    root = folder(table)
    return {
        str(file.parent.relative_to(root)): sorted(file.read_text().splitlines())
        for file in root.rglob("manifest")
    }


def read(table: TableRecord) -> Partitions:
    """The URLs of each partition by its values, as Hive takes them from the folders' names."""
    found = {}
    for name, urls in manifests(table).items():
        pairs = [] if name == "." else [part.partition("=")[::2] for part in name.split("/")]
        values = tuple(
            (unquote(column), None if text == NULL else unquote(text)) for column, text in pairs
        )
        found[values] = urls
    return found


def snapshot(world: World, table: TableRecord) -> Partitions:
    """The same by the table's log."""
    live: dict[str, dict[str, str | None]] = {}
    columns: list[str] = []
    for file in sorted(world.log_folder(table).glob("*.json")):
        for line in file.read_text().splitlines():
            action = json.loads(line)
            if "metaData" in action:
                columns = action["metaData"]["partitionColumns"]
            if "add" in action:
                live[action["add"]["path"]] = action["add"]["partitionValues"]
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
    found: Partitions = {} if columns else {(): []}
    for path, values in live.items():
        of = tuple((column, values[column] or None) for column in columns)
        found.setdefault(of, []).append(f"{table.location}/{unquote(path)}")
    return {values: sorted(urls) for values, urls in found.items()}


def times(table: TableRecord) -> dict[str, int]:
    """Which file each manifest is: another one after it was replaced."""
    root = folder(table)
    return {
        str(file.parent.relative_to(root)): file.stat().st_ino for file in root.rglob("manifest")
    }


async def commit(world: World, table: TableRecord, proposed: Proposal) -> int:
    """At the table's latest version; returns the one that it lands as."""
    head = await world.context.index.table(table.id)
    assert head is not None
    at_head = replace(proposed, read_version=head.latest_version)
    outcome = await propose(world.context, table.id, at_head)
    assert isinstance(outcome, Committed), outcome
    return outcome.record.version

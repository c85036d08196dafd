"""The command vectors as they lie beside the checkout; their README says what each field means."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[4] / "shared" / "dml"
ABSENT = f"the vectors are not beside the checkout, at ../{FOLDER.parent.name}/{FOLDER.name}"

FAMILIES = (
    "overwrite",
    "constraints",
    "generated",
    "identity",
    "defaults",
    "cdc",
    "streaming",
    "delete",
    "update",
    "merge_basic",
    "merge_extended",
    "merge_not_matched_by_source",
    "merge_schema_evolution",
    "optimize",
    "restore_clone_convert",
    "alter",
)
"""The files that are run here."""

Op = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One case, with its parts as the file has them."""

    name: str
    family: str
    target: Mapping[str, Any]
    source: Mapping[str, Any] | None
    ops: Sequence[Op]
    expect: Mapping[str, Any]
    needs: frozenset[str]
    conf: Mapping[str, str]


def load() -> list[Vector]:
    """Every vector of the families; none where they are absent."""
    return [
        Vector(
            name=raw["name"],
            family=family,
            target=raw["target"],
            source=raw.get("source"),
            ops=raw["ops"],
            expect=raw["expect"],
            needs=frozenset(raw.get("needs", ())),
            conf=raw.get("conf", {}),
        )
        for family in FAMILIES
        if (path := FOLDER / f"{family}.json").exists()
        for raw in json.loads(path.read_text())
    ]

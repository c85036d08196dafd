"""docs/security.md states every bound that can be set, as it is by default."""

import re

from tests.repository import ROOT
from tidegate_service.settings import Settings

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ((?:`\w+`)?) ?\| ([^|]+) \|$", re.M)
UNITS = {"": 1, "s": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def rows() -> list[tuple[str, str, str, str]]:
    """What, bound, setting and what the caller is told, of each row of the table of limits."""
    text = (ROOT / "docs" / "security.md").read_text()
    limits = text.partition("\n## Limits\n")[2].partition("\n## ")[0]
    return [row for row in ROW.findall(limits) if row[0] != "what"]


def value(bound: str) -> float:
    """The number that a bound begins with, in bytes, seconds or pieces."""
    found = re.match(r"([\d,]+)(?: (s|KiB|MiB|GiB))?\b", bound)
    assert found is not None, f"expected a number first, found {bound!r}"
    return float(found[1].replace(",", "")) * UNITS[found[2] or ""]


def bounding() -> dict[str, float]:
    """The settings that bound something, and their defaults."""
    return {
        name: field.default
        for name, field in Settings.model_fields.items()
        if name.startswith("max_") or name.endswith(("deadline_seconds", "keep_version_seconds"))
    }


def test_there_is_a_table():
    assert len(rows()) > 30
    assert {"max_connections", "deadline_seconds"} < set(bounding())


def test_every_setting_that_bounds_something_is_in_it_with_its_default():
    stated: dict[str, set[float]] = {}
    for _, bound, setting, _ in rows():
        if setting:
            stated.setdefault(setting.strip("`"), set()).add(value(bound))
    assert stated == {name: {default} for name, default in bounding().items()}


def test_every_row_says_what_the_caller_is_told():
    known = (
        r"\b(401|409|413|415|421|422|429|503)\b|the connection ends|nothing|a short page|the same"
    )
    silent = [what for what, _, _, told in rows() if not re.search(known, told)]
    assert silent == []

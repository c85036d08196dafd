"""Properties without effect: the list of the documentation, and that the list is true."""

import re

import pytest

from tests.repository import ROOT
from tidegate_protocol.features.idle_properties import IDLE, warnings_of
from tidegate_protocol.features.properties import InvalidProperty, check_new

OURS = ("protocol", "service", "client")
ELSEWHERE = {"properties.py", "idle_properties.py"}
HEEDED = {"begin.py": "delta.universalFormat.enabledFormats"}
"""VACUUM leaves what others wrote of the table for Iceberg; the table is not shown so here."""


def is_accepted(name, value):
    try:
        check_new({name: value})
    except InvalidProperty:
        return False
    return True


def test_the_documentation_lists_them():
    text = (ROOT / "docs" / "features.md").read_text()
    (section,) = re.findall(r"^## Properties without effect\n(.*?)^## ", text, re.M | re.S)
    listed = re.findall(r"^\| `([^`]+)` \| (.*) \|$", section, re.M)
    assert listed == list(IDLE.items())
    assert listed == sorted(listed)


def test_nothing_names_them_but_the_lists():
    named = re.compile("|".join(re.escape(f'"{name.rstrip("*")}') + '["*]' for name in IDLE))
    for folder in OURS:
        for path in (ROOT / folder).rglob("*.py"):
            if path.name not in ELSEWHERE:
                text = path.read_text().replace(f'"{HEEDED.get(path.name, "")}"', "")
                assert named.search(text) is None, path


@pytest.mark.parametrize("name", [name.replace("*", "x") for name in IDLE])
def test_they_are_accepted_and_told(name):
    assert any(is_accepted(name, value) for value in ("true", "interval 7 days", "10"))
    (warning,) = warnings_of({name: "true", "owner": "me", "delta.appendOnly": "true"})
    assert f"the property {name} has no effect here: " in warning


def test_they_are_told_in_order():
    both = {"delta.sampleRetentionDuration": "interval 7 days", "delta.autoOptimize": "true"}
    assert [text.split()[2] for text in warnings_of(both)] == sorted(both)
    assert list(warnings_of({"delta.appendOnly": "true", "mine": "x"})) == []


def test_none_denies_the_clean_up_that_there_is():
    """Logs are cleaned up (docs/upkeep.md), whatever these properties ask for."""
    assert [name for name, what in IDLE.items() if "not cleaned up" in what] == []

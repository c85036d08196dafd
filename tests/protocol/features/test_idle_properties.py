"""Properties without effect: accepted, and told in a warning."""

import pytest

from tidegate_protocol.features.idle_properties import IDLE, warnings_of
from tidegate_protocol.features.properties import InvalidProperty, check_new


def is_accepted(name, value):
    try:
        check_new({name: value})
    except InvalidProperty:
        return False
    return True


@pytest.mark.parametrize("name", [name.replace("*", "x") for name in IDLE])
def test_they_are_accepted_and_told(name):
    assert any(is_accepted(name, value) for value in ("true", "interval 7 days", "10"))
    (warning,) = warnings_of({name: "true", "owner": "me", "delta.appendOnly": "true"})
    assert f"the property {name} has no effect here: " in warning


def test_they_are_told_in_order():
    both = {"delta.sampleRetentionDuration": "interval 7 days", "delta.autoOptimize": "true"}
    assert [text.split()[2] for text in warnings_of(both)] == sorted(both)
    assert list(warnings_of({"delta.appendOnly": "true", "mine": "x"})) == []

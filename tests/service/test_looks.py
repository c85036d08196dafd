"""Which heads a look at a log speaks for."""

from dataclasses import replace

import pytest

from tests.service.test_table_ids import table
from tidegate_service.core import looks
from tidegate_service.core.looks import QUIET_MS, Looks

AT_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("later", "after_ms", "spared"),
    [
        # Nothing is known of what lies unread behind the head that was found itself.
        ({}, 0, False),
        ({"latest_version": 4}, 0, True),
        ({"latest_version": 9}, QUIET_MS - 1, True),
        ({"latest_version": 4}, QUIET_MS, False),
        ({"latest_version": 4}, -1, False),
        ({"latest_version": 4, "epoch": 1}, 1, False),
        # As after a failover that has lost commits.
        ({"latest_version": 2}, 1, False),
    ],
)
def test_a_look_speaks_for_what_came_soon_after_it(later, after_ms, spared):
    made, found = Looks(), table()
    made.note(found, AT_MS)
    assert made.spare(replace(found, **later), AT_MS + after_ms) is spared


def test_of_one_table_only():
    made, one, other = Looks(), table(latest_version=3), table(latest_version=4)
    made.note(one, AT_MS)
    assert not made.spare(other, AT_MS)


def test_the_oldest_looks_make_room(monkeypatch):
    monkeypatch.setattr(looks, "TABLES", 2)
    made, tables = Looks(), [table() for _ in range(3)]
    for found in (*tables[:2], tables[0], tables[2]):
        made.note(found, AT_MS)
    assert [made.spare(replace(each, latest_version=4), AT_MS) for each in tables] == [
        True,
        False,
        True,
    ]

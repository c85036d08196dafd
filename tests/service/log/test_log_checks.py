"""Which heads a look at a log speaks for."""

from dataclasses import replace

import pytest

from tests.service.commit.test_table_ids import table
from tidegate_service.core.instance.log_checks import QUIET_MS, LogChecks

DATABASE = "1/5/7"
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
    made, found = LogChecks(), table()
    made.remember(found, AT_MS, database=DATABASE)
    assert made.spare(replace(found, **later), AT_MS + after_ms, database=DATABASE) is spared


def test_a_look_at_an_earlier_head_changes_nothing():
    made, found = LogChecks(), table()
    later, anew = replace(found, latest_version=9), replace(found, epoch=1)
    made.remember(later, AT_MS, database=DATABASE)
    made.remember(found, AT_MS + 1, database=DATABASE)
    assert made.last(later, database=DATABASE) == 9
    made.remember(anew, AT_MS, database=DATABASE)
    made.remember(later, AT_MS + 1, database=DATABASE)
    assert made.last(anew, database=DATABASE) == 3
    # As after a failover.
    made.remember(found, AT_MS, database="1/5/8")
    assert made.last(found, database="1/5/8") == 3


def test_in_one_database_only():
    made, found = LogChecks(), table()
    made.remember(found, AT_MS, database=DATABASE)
    later = replace(found, latest_version=4)
    assert made.spare(later, AT_MS, database=DATABASE)
    assert not made.spare(later, AT_MS, database="1/5/8")


def test_of_one_table_only():
    made, one, other = LogChecks(), table(latest_version=3), table(latest_version=4)
    made.remember(one, AT_MS, database=DATABASE)
    assert not made.spare(other, AT_MS, database=DATABASE)


def test_the_oldest_looks_make_room():
    made, tables = LogChecks(tables=2), [table() for _ in range(3)]
    for found in (*tables[:2], tables[0], tables[2]):
        made.remember(found, AT_MS, database=DATABASE)
    assert [
        made.spare(replace(each, latest_version=4), AT_MS, database=DATABASE) for each in tables
    ] == [
        True,
        False,
        True,
    ]

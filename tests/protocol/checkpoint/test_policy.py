"""What a table's properties ask of its checkpoints."""

import pytest

from tidegate_protocol.checkpoint.policy import CheckpointPolicy, policy_of
from tidegate_protocol.features.upkeep import DAY_MS, LONGEST_RETENTION_MS, interval_ms
from tidegate_protocol.log.actions import Metadata, Protocol

WEEK_MS = 7 * DAY_MS
HOUR_MS = 60 * 60 * 1000
LISTED = frozenset({"v2Checkpoint"})
PLAIN = Protocol(min_reader_version=1, min_writer_version=2)
WITH_V2 = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=LISTED, writer_features=LISTED
)


def asked(protocol=PLAIN, **properties):
    configuration = {f"delta.{name.replace('_', '.')}": value for name, value in properties.items()}
    return policy_of(protocol, Metadata(id="m", configuration=configuration))


def test_the_defaults_are_deltas():
    assert asked() == CheckpointPolicy()
    assert asked().stats_as_json
    assert not asked().stats_as_struct
    assert (asked().deleted_files_ms, asked().transactions_ms) == (WEEK_MS, None)


@pytest.mark.parametrize(
    ("protocol", "policy", "is_v2"),
    [
        (WITH_V2, "v2", True),
        (WITH_V2, "classic", False),
        (PLAIN, "v2", False),
        (WITH_V2, "", False),
    ],
)
def test_v2_needs_the_feature_and_the_policy(protocol, policy, is_v2):
    assert asked(protocol, checkpointPolicy=policy).is_v2 is is_v2


@pytest.mark.parametrize(
    ("text", "as_json", "as_struct"),
    [("true", True, True), ("FALSE", False, False), ("perhaps", True, False)],
)
def test_statistics(text, as_json, as_struct):
    found = asked(checkpoint_writeStatsAsJson=text, checkpoint_writeStatsAsStruct=text)
    assert (found.stats_as_json, found.stats_as_struct) == (as_json, as_struct)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", WEEK_MS),
        ("INTERVAL 2 Hours 30 minutes", 2 * HOUR_MS + HOUR_MS // 2),
        ("168 hours", WEEK_MS),
        ("  1 day  ", 24 * HOUR_MS),
        ("interval 0 seconds", 0),
        ("3 seconds 4 milliseconds 1500 microseconds", 3005),
        ("interval 1 month", None),
        ("interval", None),
        ("", None),
        ("interval 1 weekend", None),
        (None, None),
    ],
)
def test_intervals(text, expected):
    assert interval_ms(text) == expected


def test_how_long_things_stay():
    found = asked(
        deletedFileRetentionDuration="interval 1 hour",
        setTransactionRetentionDuration="interval 2 hours",
    )
    assert (found.deleted_files_ms, found.transactions_ms) == (HOUR_MS, 2 * HOUR_MS)
    unread = asked(
        deletedFileRetentionDuration="interval +90 days", setTransactionRetentionDuration="P90D"
    )
    assert (unread.deleted_files_ms, unread.transactions_ms) == (LONGEST_RETENTION_MS, None)

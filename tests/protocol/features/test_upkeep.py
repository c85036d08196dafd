"""Properties of the log's upkeep are read as Delta reads them."""

import pytest

from tidegate_protocol.features.upkeep import (
    DAY_MS,
    LONGEST_RETENTION_MS,
    checkpoint_interval,
    cleans_expired_logs,
    deleted_file_retention_ms,
    log_retention_ms,
    protected_before,
)
from tidegate_protocol.log.actions import Metadata, Protocol


@pytest.mark.parametrize(
    ("text", "interval"),
    [(None, 10), ("1", 1), ("100", 100), ("100001", 100_000), ("0", 10), ("-1", 10), ("x", 10)],
)
def test_checkpoint_interval(text, interval):
    assert (
        checkpoint_interval({} if text is None else {"delta.checkpointInterval": text}) == interval
    )


@pytest.mark.parametrize(
    ("text", "retention_ms"),
    [
        (None, 30 * DAY_MS),
        ("interval 7 days", 7 * DAY_MS),
        ("INTERVAL 1 WEEK", 7 * DAY_MS),
        ("2 hours 30 minutes", 9_000_000),
        ("interval 1500000 microseconds", 1500),
        ("interval 1 second 5 milliseconds", 1005),
        ("interval 1 month", None),
        ("soon", None),
        ("interval 0 days", 0),
        ("interval 999999999999999999 weeks", LONGEST_RETENTION_MS),
    ],
)
def test_log_retention(text, retention_ms):
    found = {} if text is None else {"delta.logRetentionDuration": text}
    assert log_retention_ms(found) == retention_ms


@pytest.mark.parametrize(
    ("text", "retention_ms"),
    [
        (None, 7 * DAY_MS),
        ("interval 90 days", 90 * DAY_MS),
        ("interval +90 days", LONGEST_RETENTION_MS),
        ("P90D", LONGEST_RETENTION_MS),
        ("", LONGEST_RETENTION_MS),
    ],
)
def test_retention_of_deleted_files(text, retention_ms):
    found = {} if text is None else {"delta.deletedFileRetentionDuration": text}
    assert deleted_file_retention_ms(found) == retention_ms


@pytest.mark.parametrize(
    ("text", "cleans"), [(None, True), ("true", True), ("false", False), ("FALSE", False)]
)
def test_expired_log_cleanup(text, cleans):
    found = {} if text is None else {"delta.enableExpiredLogCleanup": text}
    assert cleans_expired_logs(found) is cleans


@pytest.mark.parametrize(
    ("features", "text", "before"),
    [
        (None, "5", 0),
        (frozenset({"checkpointProtection"}), None, 0),
        (frozenset({"checkpointProtection"}), "x", 0),
        (frozenset({"checkpointProtection"}), "5", 5),
        (frozenset({"appendOnly"}), "5", 0),
    ],
)
def test_checkpoint_protection(features, text, before):
    protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=features)
    name = "delta.requireCheckpointProtectionBeforeVersion"
    metadata = Metadata(id="i", configuration={} if text is None else {name: text})
    assert protected_before(protocol, metadata) == before

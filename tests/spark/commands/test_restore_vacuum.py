"""RESTORE beside VACUUM, which deletes files that were removed before its retention: a RESTORE may
have seen these files right before. Stock Delta brings back what the vacuum then deletes."""

import json

import pytest

from tests.spark.commands.test_restore import changed
from tests.spark.tables import folder_of, overtake
from tidegate import ConcurrentDeleteReadException, InvalidRequest
from tidegate.spark.commands import restore as restoring

__all__ = ["changed"]

DONE = {"status": "COMPLETED"}


def written(table, version, operation, **parameters):
    """Another writer's commit of no file."""
    file = folder_of(table) / "_delta_log" / f"{version:020d}.json"
    info = {"timestamp": 1, "operation": operation, "operationParameters": parameters}
    file.write_text(json.dumps({"commitInfo": info}) + "\n")


def test_one_that_has_not_ended(spark, changed):
    written(changed, 4, "VACUUM START")
    with pytest.raises(InvalidRequest, match="began at version 4 and has not ended"):
        changed.restore(version=1, spark=spark)
    written(changed, 5, "VACUUM END", **DONE)
    assert changed.restore(version=1, spark=spark).receipt.version == 6


def test_one_that_failed(spark, changed):
    """Its last deletes may be on their way to the store."""
    written(changed, 4, "VACUUM START")
    written(changed, 5, "VACUUM END", status="FAILED")
    with pytest.raises(InvalidRequest, match="began at version 4 and has not ended"):
        changed.restore(version=1, spark=spark)
    assert changed.version == 5


def test_one_that_begins_after_files_were_looked_for(spark, lake, changed):
    mine = lake.table(changed.id)
    overtake(mine, lambda: written(changed, 4, "VACUUM START"))
    with pytest.raises(ConcurrentDeleteReadException, match="VACUUM START"):
        mine.restore(version=1, spark=spark)
    assert changed.version == 4


def test_one_that_was_cut_off_long_ago_is_forgotten(spark, changed, monkeypatch):
    monkeypatch.setattr(restoring, "_VACUUM_MS", 0)
    written(changed, 4, "VACUUM START")
    assert changed.restore(version=1, spark=spark).receipt.version == 5


def test_one_that_deletes_what_was_removed_before(spark, changed):
    """A table that was spoiled a moment ago comes back beside a vacuum with a retention."""
    week = {"defaultRetentionMillis": "604800000"}
    written(changed, 4, "VACUUM START", specifiedRetentionMillis="0", **week)
    with pytest.raises(InvalidRequest, match="began at version 4"):
        changed.restore(version=1, spark=spark)
    written(changed, 5, "VACUUM START", **week)
    written(changed, 6, "VACUUM END", **DONE)
    with pytest.raises(InvalidRequest, match="began at version 4"):
        changed.restore(version=1, spark=spark)
    written(changed, 7, "VACUUM END", **DONE)
    written(changed, 8, "VACUUM START", **week)
    assert changed.restore(version=1, spark=spark).receipt.version == 9


def test_a_version_that_adds_no_file_again(spark, changed):
    written(changed, 4, "VACUUM START")
    assert changed.restore(version=0, spark=spark).receipt.version == 5

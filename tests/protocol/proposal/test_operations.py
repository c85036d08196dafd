"""What operation names tell."""

import pytest

from tidegate_protocol.proposal import operations

OVERWRITE = {"mode": "Overwrite", "canOverwriteSchema": True}


@pytest.mark.parametrize(
    ("operation", "changes"),
    [
        ("WRITE", True),
        ("STREAMING UPDATE", True),
        ("DELETE", True),
        ("TRUNCATE", True),
        ("MERGE", True),
        ("UPDATE", True),
        ("CREATE TABLE AS SELECT", True),
        ("REPLACE TABLE", True),
        ("RESTORE", True),
        ("CLONE", True),
        ("CONVERT", True),
        ("CREATE TABLE", False),
        ("OPTIMIZE", False),
        ("REORG", False),
        ("SET TBLPROPERTIES", False),
        ("COMPUTE STATS", False),
        ("Manual Update", False),
        ("nobody knows it", True),
        ("optimize", True),
    ],
)
def test_changes_data(operation, changes):
    assert operations.changes_data(operation) is changes


def test_in_place_updates_and_tight_bounds():
    assert operations.updates_files_in_place("COMPUTE STATS")
    assert not operations.updates_files_in_place("RESTORE")
    assert operations.may_keep_tight_bounds("RESTORE")
    assert not operations.may_keep_tight_bounds("DELETE")


@pytest.mark.parametrize(
    ("operation", "parameters", "may"),
    [
        ("WRITE", OVERWRITE, True),
        ("WRITE", {"mode": "overwrite", "canOverwriteSchema": "true"}, True),
        ("WRITE", {"mode": "Overwrite"}, False),
        ("WRITE", {"mode": "Append", "canOverwriteSchema": True}, False),
        ("WRITE", {}, False),
        ("REPLACE TABLE", {}, True),
        ("CREATE OR REPLACE TABLE AS SELECT", {"isV1SaveAsTableOverwrite": False}, True),
        ("REPLACE TABLE", {"isV1SaveAsTableOverwrite": True}, False),
        ("REPLACE TABLE", {"isV1SaveAsTableOverwrite": True, "canOverwriteSchema": True}, True),
        ("CLONE", {}, True),
        ("RENAME COLUMN", {}, True),
        ("RESTORE", {"version": "3"}, True),
        ("Manual Update", {}, True),
        ("SET TBLPROPERTIES", OVERWRITE, False),
        ("nobody knows it", OVERWRITE, False),
    ],
)
def test_may_change_partitioning(operation, parameters, may):
    assert operations.may_change_partitioning(operation, parameters) is may


def test_only_replacing_operations_replace_the_table():
    assert operations.replaces_table("REPLACE TABLE AS SELECT")
    assert not operations.replaces_table("Manual Update")

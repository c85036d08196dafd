"""Symlink manifests and deletion vectors exclude each other, as in Delta."""

import pytest

from tests.builders.actions import add, features, metadata, remove
from tests.builders.ledgers import NO_TABLE, prepared, state
from tests.builders.lines import vector
from tests.builders.proposals import proposal
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.file_demands import check_live_files
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import Invalid, ReadState

MANIFESTS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
PROTOCOL = features("appendOnly", "invariants", readers=["deletionVectors"])


def of(*properties: dict[str, str]) -> Metadata:
    together = {name: text for each in properties for name, text in each.items()}
    return metadata(properties=together)


def outcome(new: Metadata, read: ReadState) -> object:
    asked = proposal(new, read_version=read.version, operation="SET TBLPROPERTIES")
    return prepare(asked, read)


@pytest.mark.parametrize("before", [{}, MANIFESTS, VECTORS])
def test_a_table_does_not_get_both(before: dict[str, str]):
    invalid = outcome(of(MANIFESTS, VECTORS), state(of(before), PROTOCOL))
    assert isinstance(invalid, Invalid)
    assert invalid.code is Code.INVALID_ACTION
    assert "would read deleted rows" in invalid.detail


def test_nor_does_a_new_one():
    new = proposal(PROTOCOL, of(MANIFESTS, VECTORS), read_version=-1, operation="CREATE TABLE")
    assert isinstance(prepare(new, NO_TABLE), Invalid)


@pytest.mark.parametrize(
    "after", [of(MANIFESTS), of(VECTORS), of(MANIFESTS, VECTORS, {"owner": "me"})]
)
def test_one_that_another_writer_gave_both_keeps_them_or_loses_one(after: Metadata):
    mine = prepared(after, at=state(of(MANIFESTS, VECTORS), PROTOCOL))
    assert mine.metadata == after


def test_files_have_no_deletion_vector_when_they_are_switched_on():
    mine = prepared(of(MANIFESTS), at=state(of(), PROTOCOL))
    assert mine.demands == (FileDemand.NO_DELETION_VECTORS,)
    assert check_live_files(mine, [add("a")]) is None
    violation = check_live_files(mine, [add("a"), add("b", deletionVector=vector("v"))])
    assert violation is not None
    assert violation.path == "b"


def test_files_that_are_written_anew_in_the_same_commit_may_have():
    files = (remove("b", deletionVector=vector("ab^-aqEH.-t@S}K{vb[*k^")), add("c"))
    mine = prepared(of(MANIFESTS), *files, at=state(of(), PROTOCOL))
    assert check_live_files(mine, [add("b", deletionVector=vector("v"))]) is None


@pytest.mark.parametrize(
    ("before", "after", "protocol"),
    [
        (of(), of(MANIFESTS), None),
        (of(MANIFESTS), of(MANIFESTS, {"owner": "me"}), PROTOCOL),
        (of(MANIFESTS), of(), PROTOCOL),
        (of(), of(dict.fromkeys(MANIFESTS, "false")), PROTOCOL),
    ],
)
def test_files_are_not_looked_through_otherwise(before, after, protocol):
    assert prepared(after, at=state(before, protocol)).demands == ()

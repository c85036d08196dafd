"""One test for each conflict-rule mutant that this package could be turned into.

Each goes through the ledger, as a writer would meet it, and names the mutant that it kills; those
of the rules about row ids and column mapping are in `test_mutants_features.py`. Not here, because
nothing here could have the defect: reading the index before the lock (the service's tests).
"""

import pytest

from tests.builders.actions import (
    add,
    commit_info,
    domain,
    features,
    metadata,
    protocol,
    remove,
    txn,
    unknown,
)
from tests.builders.ledgers import NOW, TABLE, landed, ledger, prepared, state, winner
from tests.builders.lines import vector, wide
from tests.builders.proposals import proposal, reads
from tests.protocol.racing import answer, code, foreign
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.ledger.outcomes import Ratified, Replayed
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.proposal.transaction import Conflict, Invalid

BY_X = metadata(["x", "v"], ["x"])
WEAK = {"delta.isolationLevel": "WriteSerializable"}
BY_X_WEAK = metadata(["x", "v"], ["x"], WEAK)


def lands(*arguments, **fields):
    assert isinstance(answer(*arguments, **fields), Ratified)


def test_kills_no_protocol_check():
    before = landed(ledger(), protocol(1, 3), operation="UPGRADE PROTOCOL")
    assert code(before, add("b")) is Code.PROTOCOL_CHANGED


def test_kills_allowing_a_winner_to_remove_features():
    before = foreign(
        ledger(table_protocol=features("appendOnly", "domainMetadata")),
        commit_info(operation="DROP FEATURE"),
        features("appendOnly"),
    )
    assert code(before, add("b")) is Code.PROTOCOL_CHANGED


def test_kills_no_metadata_check():
    before = landed(ledger(), metadata(description="d"), operation="SET TBLPROPERTIES")
    assert code(before, add("b")) is Code.METADATA_CHANGED


def test_kills_no_domain_overlap_check():
    before = landed(ledger(table_protocol=features("domainMetadata")), domain("d", "1"))
    assert code(before, domain("d", "2")) is Code.CONCURRENT_TRANSACTION


def test_kills_no_app_id_check():
    before = landed(ledger(), txn("app", 1))
    assert code(before, add("b"), reads=reads(app_ids=["app"])) is Code.CONCURRENT_TRANSACTION


def test_kills_blind_appends_exempt_under_serializable():
    before = landed(ledger(BY_X), add("n", {"x": "1"}))
    assert code(before, add("b", {"x": "1"}), reads=reads("x = 1")) is Code.CONCURRENT_APPEND


def test_kills_blind_appends_exempt_although_the_loser_changes_metadata():
    before = landed(ledger(BY_X_WEAK), add("n", {"x": "1"}))
    new = metadata(["x", "v"], ["x"], WEAK, description="d")
    assert code(before, new, reads=reads("x = 1"), operation="X") is Code.CONCURRENT_APPEND


def test_kills_trusting_a_false_is_blind_append():
    lie = commit_info(operation="WRITE", isBlindAppend=True)
    before = foreign(ledger(BY_X_WEAK), lie, remove("o"), add("n", {"x": "1"}))
    assert code(before, add("b", {"x": "1"}), reads=reads("x = 1")) is Code.CONCURRENT_APPEND


def test_kills_never_believing_is_blind_append():
    before = landed(ledger(BY_X_WEAK), add("n", {"x": "1"}))
    lands(before, add("b", {"x": "1"}), reads=reads("x = 1"))


def test_kills_no_added_against_predicate_check():
    before = landed(ledger(BY_X), add("n", {"x": "1"}), reads=reads("x = 5"))
    assert code(before, add("b", {"x": "1"}), reads=reads("x = 1")) is Code.CONCURRENT_APPEND


def test_kills_predicate_inverted():
    before = landed(ledger(BY_X), add("n", {"x": "1"}))
    lands(before, add("b", {"x": "2"}), reads=reads("x = 2"))


def test_kills_null_partition_matches_nothing():
    before = landed(ledger(BY_X), add("n", {"x": None}))
    assert code(before, add("b", {"x": "1"}), reads=reads("x IS NULL")) is Code.CONCURRENT_APPEND


def test_kills_no_deleted_that_was_read_check():
    before = landed(landed(ledger(BY_X), add("a", {"x": "1"})), remove("a"))
    outcome = code(before, add("b", {"x": "1"}), read_version=1, reads=reads("x = 1", files=["a"]))
    assert outcome is Code.CONCURRENT_DELETE_READ


def test_kills_no_whole_table_check_for_removed_files():
    before = landed(landed(ledger(BY_X), add("a", {"x": "1"})), remove("a"))
    outcome = code(before, add("b", {"x": "1"}), read_version=1, reads=reads(whole_table=True))
    assert outcome is Code.CONCURRENT_DELETE_READ


def test_kills_no_whole_table_check_for_added_files():
    before = landed(ledger(BY_X), add("n", {"x": "2"}))
    outcome = code(before, add("b", {"x": "1"}), reads=reads("x = 1", whole_table=True))
    assert outcome is Code.CONCURRENT_APPEND


def test_kills_no_double_delete_check():
    before = landed(landed(ledger(BY_X), add("a", {"x": "1"})), remove("a"))
    assert code(before, remove("a"), read_version=1) is Code.CONCURRENT_DELETE_DELETE


VECTORS = {
    "table_metadata": metadata(properties={"delta.enableDeletionVectors": "true"}),
    "table_protocol": features(readers=["deletionVectors"]),
}


def test_kills_file_key_without_its_deletion_vector():
    one, other = vector(offset=1), vector(offset=2)
    first = add("a", stats=wide(), deletionVector=one)
    before = landed(ledger(**VECTORS), first)
    # Whichever comes first, the old file goes and the new one stays.
    second = add("a", stats=wide(), deletionVector=other)
    after = landed(before, second, remove("a", deletionVector=one))
    assert list(after.read(TABLE).files.values()) == [second]


def test_kills_removed_path_compared_with_its_deletion_vector():
    one, other = vector(offset=1), vector(offset=2)
    before = landed(ledger(**VECTORS), add("a", stats=wide(), deletionVector=one))
    rewritten = landed(
        before,
        remove("a", deletionVector=one),
        add("a", stats=wide(), deletionVector=other),
    )
    outcome = code(
        rewritten,
        remove("a", deletionVector=other, dataChange=False),
        read_version=1,
        operation="X",
    )
    assert outcome is Code.CONCURRENT_DELETE_DELETE


@pytest.mark.parametrize("mine", ["a%2Db", "a-b"])
def test_kills_raw_instead_of_decoded_paths(mine):
    theirs = {"a%2Db": "a-b", "a-b": "a%2Db"}[mine]
    before = landed(landed(ledger(BY_X), add(theirs, {"x": "1"})), remove(theirs))
    assert code(before, remove(mine), read_version=1) is Code.CONCURRENT_DELETE_DELETE
    outcome = code(before, add("b", {"x": "1"}), read_version=1, reads=reads("x = 1", files=[mine]))
    assert outcome is Code.CONCURRENT_DELETE_READ
    assert isinstance(answer(before, remove(mine), remove(theirs), read_version=1), Invalid)


def test_kills_winners_without_data_change_ignored():
    start = landed(ledger(BY_X), add("a", {"x": "1"}))
    before = landed(
        start,
        remove("a", dataChange=False),
        add("a2", {"x": "1"}, dataChange=False),
        operation="OPTIMIZE",
        reads=reads("x = 1", files=["a"]),
    )
    again = {"read_version": 1, "operation": "OPTIMIZE"}
    compacted = add("a3", {"x": "1"}, dataChange=False)
    assert code(before, add("b", {"x": "1"}), read_version=1, reads=reads("x = 1")) is (
        Code.CONCURRENT_APPEND
    )
    assert code(before, compacted, reads=reads("x = 1", files=["a"]), **again) is (
        Code.CONCURRENT_DELETE_READ
    )
    assert code(before, compacted, remove("a", dataChange=False), **again) is (
        Code.CONCURRENT_DELETE_DELETE
    )


@pytest.mark.parametrize("at", [0, 1, 2])
def test_kills_only_the_last_winner_checked_and_off_by_one_at_either_end(at):
    before = ledger(BY_X)
    for index in range(3):
        before = landed(before, add(f"n{index}", {"x": "1" if index == at else "2"}))
    outcome = answer(before, add("b", {"x": "1"}), reads=reads("x = 1"))
    assert isinstance(outcome, Conflict)
    assert outcome.winner.version == at + 1


def test_kills_off_by_one_that_judges_the_version_that_was_read():
    before = landed(ledger(BY_X), add("n", {"x": "1"}))
    lands(before, add("b", {"x": "1"}), read_version=1, reads=reads("x = 1"))


def test_kills_decision_reused_after_somebody_else_took_the_version():
    decision = check_conflicts(prepared(add()), [winner()])
    with pytest.raises(ValueError, match="cannot land as version 3"):
        complete(decision, now_ms=NOW, previous_timestamp=NOW, version=3)


def test_kills_timestamp_not_previous_plus_one():
    on = {"delta.enableInCommitTimestamps": "true"}
    before = ledger(metadata(properties=on), features("inCommitTimestamp"))
    after = landed(landed(before, add("a"), now_ms=NOW), add("b"), now_ms=NOW - 500)
    infos = [commit.actions[0] for commit in after.tables[TABLE].commits]
    assert [info.in_commit_timestamp for info in infos] == [NOW, NOW + 1, NOW + 2]


def test_kills_unknown_action_ignored():
    assert code(foreign(ledger(), unknown()), add("b")) is Code.PROTOCOL_CHANGED
    before = landed(ledger(), add("a"))
    assert code(before, add("b"), unknown()) is Code.PROTOCOL_CHANGED


@pytest.mark.parametrize("versions", [[2], [1, 3]])
def test_kills_missing_history_read_as_no_conflict(versions):
    at = state(BY_X)
    mine = prepared(add("b", {"x": "1"}), at=at, reads=reads("x = 1"))
    with pytest.raises(ValueError, match="expected winner"):
        check_conflicts(mine, [winner(version=version) for version in versions])


def test_kills_body_digest_ignored():
    offer = proposal(add("a"), read_version=0)
    before, first = ledger().propose(TABLE, offer, now_ms=NOW)
    other = answer(before, add("b"), transaction_id=offer.transaction_id)
    assert isinstance(other, Invalid)
    assert other.code is Code.TRANSACTION_ID_REUSED
    assert before.propose(TABLE, offer, now_ms=NOW)[1] == Replayed(commit=first.commit)

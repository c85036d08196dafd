"""The ledger and the log's folder: other writers, publishing, quarantine."""

import json

import pytest

from tests.builders.actions import (
    add,
    commit_info,
    domain,
    features,
    managed,
    metadata,
    protocol,
    remove,
    unknown,
)
from tests.builders.ledgers import NOW, TABLE, landed, ledger
from tests.builders.proposals import proposal
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import (
    Ingested,
    NothingToPublish,
    Published,
    Quarantined,
    Ratified,
    Replayed,
    Stray,
    TableNotFound,
    TransactionAborted,
)
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.proposal.transaction import Conflict, Invalid

MANAGED = managed()


def foreign(before, *actions, modified_ms=NOW + 5):
    return before.foreign_commit(TABLE, encode_lines(actions), modified_ms=modified_ms)


def table(of):
    return of.tables[TABLE]


class TestForeignCommit:
    def test_it_is_the_next_version_the_moment_it_is_there(self):
        info = commit_info(operation="WRITE", txnId="theirs")
        after, outcome = foreign(ledger(), info, add("f"))
        assert isinstance(outcome, Ingested)
        assert outcome.commit.version == 1
        assert outcome.commit.body_digest is None
        assert set(after.read(TABLE).files) == {("f", None)}
        assert table(after).published_version == 1

    @pytest.mark.parametrize("said", [{}, {"timestamp": 1}, {"timestamp": NOW + 10**12}])
    def test_it_is_dated_by_its_file(self, said):
        _, outcome = foreign(ledger(), commit_info(**said), add("f"))
        assert outcome.commit.timestamp == NOW + 5
        _, outcome = foreign(ledger(), add("f"), modified_ms=NOW - 5)
        assert outcome.commit.timestamp == NOW + 1
        assert outcome.commit.transaction_id is None

    def test_it_is_judged_against_like_any_other(self):
        before, _ = foreign(landed(ledger(), add("a")), remove("a"))
        _, outcome = before.propose(TABLE, proposal(remove("a"), read_version=1), now_ms=NOW)
        assert isinstance(outcome, Conflict)
        assert outcome.winner.version == 2

    def test_what_it_holds_of_unknown_kind_cannot_be_judged(self):
        before, _ = foreign(ledger(), unknown())
        _, outcome = before.propose(TABLE, proposal(add("a"), read_version=0), now_ms=NOW)
        assert outcome.detail.startswith("cannot judge")
        _, outcome = before.propose(TABLE, proposal(add("a"), read_version=1), now_ms=NOW)
        assert isinstance(outcome, Ratified)

    def test_the_next_commit_is_later(self):
        before, _ = foreign(ledger(), add("f"), modified_ms=NOW + 1000)
        assert table(landed(before, add("b"))).commits[-1].timestamp == NOW + 1001

    def test_it_may_change_the_metadata(self):
        new = metadata(description="theirs")
        after, outcome = foreign(ledger(), new)
        assert isinstance(outcome, Ingested)
        assert after.read(TABLE).metadata == new
        _, outcome = after.propose(TABLE, proposal(add("a"), read_version=0), now_ms=NOW)
        assert outcome.code is Code.METADATA_CHANGED

    def test_its_id_is_taken(self):
        before, _ = foreign(ledger(), commit_info(txnId="theirs"), add("f"))
        offer = proposal(add("a"), transaction_id="theirs", read_version=0)
        _, outcome = before.propose(TABLE, offer, now_ms=NOW)
        assert isinstance(outcome, Invalid)
        assert outcome.code is Code.TRANSACTION_ID_REUSED

    def test_an_id_that_is_taken_stays_with_its_owner(self):
        offer = proposal(add("a"), read_version=0)
        before, first = ledger().propose(TABLE, offer, now_ms=NOW)
        after, outcome = foreign(before, commit_info(txnId=offer.transaction_id), add("f"))
        assert outcome.commit.transaction_id is None
        assert after.propose(TABLE, offer, now_ms=NOW)[1] == Replayed(commit=first.commit)

    def test_a_tombstone_stays_one(self):
        before, _ = ledger().abort(TABLE, "id")
        after, _ = foreign(before, commit_info(txnId="id"), add("f"))
        _, outcome = after.propose(
            TABLE, proposal(add("a"), transaction_id="id", read_version=0), now_ms=NOW
        )
        assert outcome == TransactionAborted(transaction_id="id")

    def test_our_own_commit_has_landed_whatever_a_tombstone_says(self):
        offer = proposal(add("a"), read_version=0)
        before, _ = ledger().abort(TABLE, offer.transaction_id)
        _, first = ledger().propose(TABLE, offer, now_ms=NOW)
        after, outcome = before.foreign_commit(TABLE, first.commit.content, modified_ms=NOW)
        assert outcome.commit.transaction_id == offer.transaction_id
        assert after.propose(TABLE, offer, now_ms=NOW)[1] == Replayed(commit=first.commit)

    def test_our_own_commit_of_which_the_answer_was_lost_is_a_replay(self):
        """The file landed, the process died before it was recorded (crash point O6)."""
        offer = proposal(add("a"), read_version=0)
        before = ledger()
        _, first = before.propose(TABLE, offer, now_ms=NOW)
        after, outcome = before.foreign_commit(TABLE, first.commit.content, modified_ms=NOW)
        assert outcome.commit == first.commit
        assert after.propose(TABLE, offer, now_ms=NOW)[1] == Replayed(commit=first.commit)

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"\n", "the file is empty"),
            (b'{"add":{"path":"a"', "line 1"),
            (encode_lines([managed()]), "catalogManaged"),
            (encode_lines([features("sorcery")]), "sorcery"),
            (
                encode_lines([metadata(properties={"delta.redirectWriterOnly-preview": "{}"})]),
                "redirectWriterOnly-preview",
            ),
            (encode_lines([domain("delta.rowTracking", "{}")]), "rowIdHighWaterMark"),
            (encode_lines([metadata(schemaString="{")]), "changed the metadata"),
        ],
    )
    def test_one_that_cannot_be_read_quarantines_the_table(self, content, why):
        before = landed(ledger(), add("a"))
        after, outcome = before.foreign_commit(TABLE, content, modified_ms=NOW)
        assert isinstance(outcome, Quarantined)
        assert why in outcome.reason
        assert outcome.reason.startswith("version 2 ")
        assert table(after).latest_version == 1

    def test_nowhere(self):
        assert foreign(Ledger(), add("f"))[1] == TableNotFound(table_id=TABLE)


class TestQuarantine:
    def quarantined(self):
        offer = proposal(add("a"), read_version=0)
        before, first = ledger().propose(TABLE, offer, now_ms=NOW)
        after, outcome = before.foreign_commit(TABLE, b"torn", modified_ms=NOW)
        return after, outcome, offer, first

    def test_nothing_is_committed_any_more(self):
        after, answer, _, _ = self.quarantined()
        offer = proposal(add("b"), read_version=0)
        assert after.propose(TABLE, offer, now_ms=NOW) == (after, answer)
        assert after.conflict_check(TABLE, offer) == answer
        assert foreign(after, add("f")) == (after, answer)
        assert after.publish(TABLE) == (after, answer)

    def test_what_is_known_is_still_told(self):
        after, _, offer, first = self.quarantined()
        assert after.propose(TABLE, offer, now_ms=NOW)[1] == Replayed(commit=first.commit)
        assert set(after.read(TABLE).files) == {("a", None)}
        assert isinstance(after.abort(TABLE, "id")[1], TransactionAborted)


class TestPublish:
    def test_a_plain_tables_versions_are_published_as_they_land(self):
        before = landed(ledger(), add("a"))
        assert table(before).published_version == 1
        assert before.publish(TABLE) == (before, NothingToPublish())

    def test_versions_are_published_in_order(self):
        before = landed(ledger(table_protocol=MANAGED), add("a"))
        assert table(before).published_version == -1
        once, first = before.publish(TABLE)
        twice, second = once.publish(TABLE)
        assert (first, second) == (Published(version=0), Published(version=1))
        assert table(once).published_version == 0
        assert twice.publish(TABLE) == (twice, NothingToPublish())

    def test_the_same_bytes_in_place_are_our_own(self):
        before = landed(ledger(table_protocol=MANAGED), add("a"))
        content = table(before).commits[0].content
        after, outcome = before.foreign_commit(TABLE, content, modified_ms=NOW)
        assert outcome == Stray(version=0)
        after, outcome = after.publish(TABLE)
        assert outcome == Published(version=0)
        assert table(after).strays == {}

    def test_other_bytes_in_place_quarantine_the_table_and_stay(self):
        before = ledger(table_protocol=MANAGED)
        after, outcome = before.foreign_commit(TABLE, b"theirs", modified_ms=NOW)
        assert outcome == Stray(version=0)
        assert set(landed(after, add("a")).read(TABLE).files) == {("a", None)}
        after, outcome = after.publish(TABLE)
        assert isinstance(outcome, Quarantined)
        assert "version 0" in outcome.reason
        assert table(after).strays == {0: b"theirs"}
        assert table(after).published_version == -1

    def test_strays_take_the_next_free_name(self):
        before, _ = ledger(table_protocol=MANAGED).publish(TABLE)
        names = []
        for _ in range(3):
            before, outcome = before.foreign_commit(TABLE, b"theirs", modified_ms=NOW)
            names.append(outcome.version)
        assert names == [1, 2, 3]
        after = landed(before, add("a"))
        assert isinstance(after.publish(TABLE)[1], Quarantined)

    def test_nowhere(self):
        assert Ledger().publish(TABLE)[1] == TableNotFound(table_id=TABLE)

    def test_a_catalog_managed_commit_carries_its_own_time(self):
        commit = table(landed(ledger(table_protocol=MANAGED), add("a"))).commits[1]
        info = json.loads(commit.content.splitlines()[0])["commitInfo"]
        assert info["inCommitTimestamp"] == commit.timestamp == NOW + 1
        assert info["txnId"] == commit.transaction_id


def test_a_foreign_protocol_upgrade_is_a_winner():
    before, _ = foreign(ledger(), protocol(1, 3))
    _, outcome = before.propose(TABLE, proposal(add("a"), read_version=0), now_ms=NOW)
    assert outcome.code is Code.PROTOCOL_CHANGED

"""The ledger: creating, proposing, replaying, aborting, reading, forgetting."""

import json
from dataclasses import replace

import pytest

from tests.builders.actions import add, managed, metadata, protocol, remove, txn
from tests.builders.ledgers import NOW, TABLE, landed, ledger
from tests.builders.proposals import proposal, reads
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import (
    Created,
    Forgotten,
    NothingToCommit,
    Ratified,
    Replayed,
    TableExists,
    TableNotFound,
    TransactionAborted,
    TransactionCommitted,
    Unpublished,
    VersionNotFound,
    WouldCommit,
)
from tidegate_protocol.proposal.transaction import Conflict, Invalid, IsolationLevel
from tidegate_protocol.replay.snapshot import Snapshot


def proposed(before, offer, now_ms=NOW):
    return before.propose(TABLE, offer, now_ms=now_ms)


def table(of):
    return of.tables[TABLE]


class TestCreate:
    def first(self, *actions, **fields):
        fields = {"read_version": -1, "operation": "CREATE TABLE", **fields}
        return proposal(*(actions or (protocol(), metadata())), **fields)

    @pytest.mark.parametrize(("kind", "is_managed"), [(protocol(), False), (managed(), True)])
    def test_version_0_says_what_kind_of_table_it_is(self, kind, is_managed):
        after, outcome = Ledger().create(TABLE, self.first(kind, metadata()), now_ms=NOW)
        assert isinstance(outcome, Created)
        assert outcome.commit.version == 0
        assert outcome.commit.timestamp == NOW
        assert table(after).catalog_managed is is_managed
        assert table(after).published_version == (-1 if is_managed else 0)

    def test_a_table_is_created_once(self):
        before = ledger()
        after, outcome = before.create(TABLE, self.first(), now_ms=NOW)
        assert outcome == TableExists(table_id=TABLE)
        assert after is before

    @pytest.mark.parametrize("version", [None, 0])
    def test_it_is_created_from_nothing(self, version):
        _, outcome = Ledger().create(TABLE, self.first(read_version=version), now_ms=NOW)
        assert isinstance(outcome, Invalid)
        assert outcome.code is Code.INVALID_REQUEST

    def test_what_is_invalid_creates_nothing(self):
        after, outcome = Ledger().create(TABLE, self.first(protocol()), now_ms=NOW)
        assert outcome.code is Code.MISSING_METADATA
        assert after.tables == {}

    def test_a_second_first_commit_loses(self):
        _, outcome = proposed(ledger(), self.first())
        assert isinstance(outcome, Conflict)
        assert outcome.code is Code.PROTOCOL_CHANGED


class TestPropose:
    def test_it_lands_at_the_next_version(self):
        after, outcome = proposed(ledger(), proposal(add("a"), read_version=0))
        assert isinstance(outcome, Ratified)
        assert outcome.commit.version == table(after).latest_version == 1
        assert outcome.commit.rebased_over == 0
        assert set(outcome.commit.snapshot.files) == {("a", None)}
        assert json.loads(outcome.commit.content.splitlines()[1]) == json.loads(add("a").raw)

    def test_it_moves_past_winners(self):
        before = landed(landed(ledger(), add("a")), add("b"))
        _, outcome = proposed(before, proposal(add("c"), read_version=0))
        assert (outcome.commit.version, outcome.commit.rebased_over) == (3, 2)

    def test_it_loses_to_any_of_them(self):
        before = landed(landed(landed(ledger(), add("a")), remove("a")), add("b"))
        after, outcome = proposed(before, proposal(remove("a"), read_version=1))
        assert isinstance(outcome, Conflict)
        assert outcome.winner.version == 2
        assert after is before

    def test_without_a_read_version_it_is_judged_at_the_head(self):
        before = landed(ledger(), metadata(name="n"), operation="SET TBLPROPERTIES")
        _, outcome = proposed(before, proposal(add("a"), read_version=None))
        assert (outcome.commit.version, outcome.commit.rebased_over) == (2, 0)

    def test_a_version_that_is_not_there_yet_is_no_final_answer(self):
        before = ledger()
        offer = proposal(add("a"), read_version=1)
        after, outcome = proposed(before, offer)
        assert outcome == VersionNotFound(table_id=TABLE, version=1, latest_version=0)
        _, outcome = proposed(landed(after, add("b")), offer)
        assert isinstance(outcome, Ratified)

    def test_versions_start_at_minus_1(self):
        _, outcome = proposed(ledger(), proposal(add("a"), read_version=-2))
        assert isinstance(outcome, Invalid)
        assert outcome.code is Code.INVALID_REQUEST

    def test_nowhere(self):
        after, outcome = Ledger().propose(TABLE, proposal(add(), read_version=0), now_ms=NOW)
        assert outcome == TableNotFound(table_id=TABLE)
        assert after.tables == {}

    def test_an_empty_one_may_be_skipped(self):
        before = ledger()
        after, outcome = proposed(
            before, proposal(skip_if_empty=True, reads=reads("true"), read_version=0)
        )
        assert outcome == NothingToCommit(read_version=0)
        assert after is before

    def test_tables_do_not_see_each_other(self):
        before = ledger()
        first = proposal(protocol(), metadata(), read_version=-1, operation="CREATE TABLE")
        both, _ = before.create("other", first, now_ms=NOW)
        same = proposal(add("a"), read_version=0)
        one, _ = both.propose(TABLE, same, now_ms=NOW)
        _, outcome = one.propose("other", same, now_ms=NOW)
        assert isinstance(outcome, Ratified)
        assert outcome.commit.version == 1

    def test_timestamps_grow_whatever_the_clock_says(self):
        first = landed(ledger(), add("a"), now_ms=NOW - 10)
        second = landed(first, add("b"), now_ms=NOW + 10)
        assert [commit.timestamp for commit in table(second).commits] == [NOW, NOW + 1, NOW + 10]


class TestHint:
    AT = metadata(["x", "v"], ["x"])

    def test_it_names_the_partition_of_the_file_that_was_read(self):
        before = landed(ledger(self.AT), add("p%20q", {"x": "1"}))
        # The winner's remove says nothing of the partition, and spells the path in its own way.
        raced = landed(before, remove("p%20q"))
        offer = proposal(read_version=1, reads=reads("x = 1", files=["p%20q"]), operation="DELETE")
        _, outcome = proposed(raced, offer)
        assert outcome.code is Code.CONCURRENT_DELETE_READ
        assert outcome.partition == {"x": "1"}

    def test_there_is_none_for_a_file_that_was_not_there(self):
        before = landed(landed(ledger(self.AT), add("a", {"x": "1"})), remove("a"))
        offer = proposal(read_version=0, reads=reads(files=["a"]), operation="DELETE")
        _, outcome = proposed(before, offer)
        assert outcome.code is Code.CONCURRENT_DELETE_READ
        assert outcome.partition is None


class TestReplay:
    def test_the_same_id_and_body_are_answered_as_the_first_time(self):
        offer = proposal(add("a"), read_version=0)
        once, first = proposed(ledger(), offer)
        later = landed(once, add("b"))
        after, outcome = proposed(later, offer, now_ms=NOW + 999)
        assert outcome == Replayed(commit=first.commit)
        assert after is later

    def test_even_where_the_table_would_refuse_it_now(self):
        offer = proposal(add("a"), read_version=None)
        once, first = proposed(ledger(), offer)
        new = metadata(["x", "v"], ["x"])
        later = landed(once, new, remove("a"), operation="REPLACE TABLE")
        _, outcome = proposed(later, offer)
        assert outcome == Replayed(commit=first.commit)

    @pytest.mark.parametrize(
        "change",
        [
            {"actions": (add("b"),)},
            {"operation": "MERGE"},
            {"user_metadata": "other"},
            {"reads": reads("true")},
        ],
    )
    def test_another_body_under_the_id_is_refused(self, change):
        offer = proposal(add("a"), read_version=0)
        once, first = proposed(ledger(), offer)
        after, outcome = proposed(once, replace(offer, **change))
        assert isinstance(outcome, Invalid)
        assert outcome.code is Code.TRANSACTION_ID_REUSED
        assert "version 1" in outcome.detail
        assert after is once
        assert proposed(after, offer)[1] == Replayed(commit=first.commit)

    def test_what_was_refused_stays_refused(self):
        raced = landed(landed(ledger(), add("a")), remove("a"))
        offer = proposal(remove("a"), read_version=1)
        later = landed(raced, add("b"))
        for at in (raced, later):
            _, outcome = proposed(at, offer)
            assert isinstance(outcome, Conflict)
            assert outcome.winner.version == 2

    def test_what_was_refused_at_the_head_stays_refused_when_the_head_has_moved(self):
        offer = proposal(add("a", {"x": "1"}), read_version=None)
        before = ledger()
        after, outcome = proposed(before, offer)
        assert outcome.code is Code.PARTITION_MISMATCH
        fits = landed(after, metadata(["x", "v"], ["x"]), operation="REPLACE TABLE")
        _, outcome = proposed(fits, offer)
        assert outcome == TransactionAborted(transaction_id=offer.transaction_id)

    def test_an_id_stays_free_after_a_refusal_that_no_other_head_could_change(self):
        offer = proposal(add("a", {"x": "1"}), read_version=0)
        after, outcome = proposed(ledger(), offer)
        assert outcome.code is Code.PARTITION_MISMATCH
        _, outcome = proposed(after, replace(offer, actions=(add("a"),)))
        assert isinstance(outcome, Ratified)

    def test_an_id_stays_free_where_no_table_would_take_the_body(self):
        offer = proposal(add("a"), add("a"), read_version=None)
        after, outcome = proposed(ledger(), offer)
        assert outcome.code is Code.DUPLICATE_ACTION
        _, outcome = proposed(after, replace(offer, actions=(add("a"),)))
        assert isinstance(outcome, Ratified)

    def test_reusing_a_landed_id_does_not_tombstone_it(self):
        offer = proposal(add("a"), read_version=None)
        once, first = proposed(ledger(), offer)
        after, outcome = proposed(once, replace(offer, actions=(add("b"),)))
        assert outcome.code is Code.TRANSACTION_ID_REUSED
        assert proposed(after, offer)[1] == Replayed(commit=first.commit)


class TestConflictCheck:
    def test_it_says_what_would_happen_and_does_nothing(self):
        before = landed(ledger(), add("a"))
        offer = proposal(add("b"), read_version=0)
        assert before.conflict_check(TABLE, offer) == WouldCommit(
            version=2,
            read_version=0,
            rebased_over=1,
            isolation_level=IsolationLevel.SERIALIZABLE,
            is_blind_append=True,
        )
        assert table(before).latest_version == 1

    def test_it_answers_everything_else_as_proposing_does(self):
        done = proposal(add("a"), read_version=0)
        before, _ = proposed(ledger(), done)
        for offer in (
            done,
            replace(done, operation="MERGE"),
            proposal(add("b"), read_version=7),
            proposal(remove("a"), read_version=None),
            proposal(skip_if_empty=True, read_version=0),
        ):
            assert before.conflict_check(TABLE, offer) == proposed(before, offer)[1]

    def test_it_leaves_no_tombstone(self):
        before = ledger()
        offer = proposal(add("a", {"x": "1"}), read_version=None)
        assert before.conflict_check(TABLE, offer).code is Code.PARTITION_MISMATCH
        assert table(before).transactions.keys() == {table(before).commits[0].transaction_id}

    def test_nowhere(self):
        assert Ledger().conflict_check(TABLE, proposal(read_version=0)) == TableNotFound(
            table_id=TABLE
        )


class TestAbort:
    def test_an_aborted_id_never_lands(self):
        offer = proposal(add("a"), read_version=0)
        after, outcome = ledger().abort(TABLE, offer.transaction_id)
        aborted = TransactionAborted(transaction_id=offer.transaction_id)
        assert outcome == aborted
        assert proposed(after, offer) == (after, aborted)
        assert after.conflict_check(TABLE, offer) == aborted
        assert after.abort(TABLE, offer.transaction_id) == (after, aborted)

    def test_it_may_come_too_late(self):
        offer = proposal(add("a"), read_version=0)
        before, first = proposed(ledger(), offer)
        after, outcome = before.abort(TABLE, offer.transaction_id)
        assert outcome == TransactionCommitted(commit=first.commit)
        assert after is before

    def test_nowhere(self):
        assert Ledger().abort(TABLE, "id")[1] == TableNotFound(table_id=TABLE)


class TestRead:
    def test_every_version_stays_readable(self):
        at = landed(landed(ledger(), add("a"), txn("app", 1)), remove("a"), txn("app", 2))
        assert set(at.read(TABLE, 1).files) == {("a", None)}
        latest = at.read(TABLE)
        assert isinstance(latest, Snapshot)
        assert (latest.version, latest.files, latest.txns["app"].version) == (2, {}, 2)
        assert at.read(TABLE, 2) == latest

    @pytest.mark.parametrize("version", [-1, 1])
    def test_others_are_not(self, version):
        missing = VersionNotFound(table_id=TABLE, version=version, latest_version=0)
        assert ledger().read(TABLE, version) == missing

    def test_nowhere(self):
        assert Ledger().read(TABLE) == TableNotFound(table_id=TABLE)


class TestForget:
    def test_nothing_is_left(self):
        after, outcome = ledger().forget(TABLE)
        assert outcome == Forgotten(table_id=TABLE)
        assert after == Ledger()

    def test_others_stay(self):
        before = ledger()
        first = proposal(protocol(), metadata(), read_version=-1, operation="CREATE TABLE")
        both, _ = before.create("other", first, now_ms=NOW)
        after, _ = both.forget("other")
        assert after == before

    def test_not_while_versions_are_nowhere_else(self):
        before = ledger(table_protocol=managed())
        after, outcome = before.forget(TABLE)
        assert outcome == Unpublished(published_version=-1, latest_version=0)
        assert after is before
        published, _ = before.publish(TABLE)
        assert published.forget(TABLE)[1] == Forgotten(table_id=TABLE)

    def test_nowhere(self):
        assert Ledger().forget(TABLE)[1] == TableNotFound(table_id=TABLE)

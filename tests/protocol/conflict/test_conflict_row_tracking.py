"""The rules of row tracking against one winner."""

import json
from typing import ClassVar

import pytest

from tests.builders.actions import add, commit_info, domain, features, metadata, protocol, remove
from tests.builders.ledgers import TABLE, landed, ledger, prepared, state, winner
from tests.builders.lines import vector, wide
from tests.builders.proposals import reads
from tests.protocol.racing import code, foreign
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.conflict.row_tracking import demands_rule, only_row_ids, row_tracking_rule
from tidegate_protocol.features.row_tracking import DOMAIN
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction

ROW_TRACKING = features("rowTracking", "domainMetadata")
AT = state(table_protocol=ROW_TRACKING)
SUSPENDED = metadata(properties={"delta.rowTrackingSuspended": "true"})
BACKFILL = "ROW TRACKING BACKFILL"
UNBACKFILL = "ROW TRACKING UNBACKFILL"


def mark(value):
    return domain(DOMAIN, json.dumps({"rowIdHighWaterMark": value}))


def ids(path, base=7, version=1, **fields):
    return add(path, baseRowId=base, defaultRowCommitVersion=version, dataChange=False, **fields)


def judged(txn, *winners):
    outcome = check_conflicts(txn, winners)
    assert isinstance(outcome, PreparedTransaction), outcome
    return outcome


def written(txn):
    """The lines that would land, by path: (base row id, commit version)."""
    ready = complete(txn, now_ms=1, previous_timestamp=0, version=txn.checked_through + 1)
    return {
        action.path: (action.base_row_id, action.default_row_commit_version)
        for action in ready.actions
        if hasattr(action, "base_row_id")
    }


class TestMark:
    def test_it_is_the_last_winners(self):
        mine = prepared(add("mine"), at=AT)
        theirs = winner(ids("w", 0), mark(9))
        idle = winner(remove("x"), version=2)
        assert written(judged(mine, theirs, idle)) == {"mine": (10, 3)}

    def test_both_write_its_domain_without_a_conflict(self):
        mine = judged(prepared(add("mine"), at=AT), winner(ids("w", 0), mark(0)))
        assert mine.row_id_high_water_mark == 0

    def test_tables_without_it_are_left_alone(self):
        mine = prepared(add("mine"))
        assert row_tracking_rule(mine, winner(add("w"))) == mine


class TestIntroduced:
    """The winner brought row tracking to the table."""

    BARE = state(table_protocol=features("domainMetadata"))

    def test_files_get_ids_as_if_it_had_been_there(self):
        mine = prepared(add("a", baseRowId=0), add("b", defaultRowCommitVersion=9), at=self.BARE)
        done = judged(mine, winner(ROW_TRACKING), winner(ids("w", 0, 2), mark(4), version=2))
        assert written(done) == {"a": (5, 3), "b": (6, 3)}

    def test_what_a_backfill_gives_a_file_after_that_stays(self):
        mine = prepared(add("a", dataChange=False), remove("b"), at=self.BARE)
        backfill = winner(ids("a", 0, 2), ids("b", 1, 2), mark(1), version=2, operation=BACKFILL)
        raised = winner(features("rowTracking", "domainMetadata", "appendOnly"), version=3)
        done = judged(mine, winner(ROW_TRACKING), backfill, raised)
        assert written(done) == {"a": (0, 2), "b": (1, 2)}

    def test_files_of_unknown_length_cannot_get_any(self):
        mine = prepared(add("a", stats=None), at=self.BARE)
        outcome = check_conflicts(mine, [winner(ROW_TRACKING)])
        assert isinstance(outcome, Conflict)
        assert (outcome.code, outcome.path) == (Code.PROTOCOL_CHANGED, "a")

    def test_nothing_is_counted_while_it_is_suspended(self):
        at = state(SUSPENDED, features("domainMetadata"))
        mine = prepared(add("a", stats=None, baseRowId=3), at=at)
        assert written(judged(mine, winner(ROW_TRACKING))) == {"a": (None, None)}


class TestBackfill:
    def test_it_leaves_files_alone_that_others_touched(self):
        mine = prepared(
            *(add(path, dataChange=False) for path in "abc"),
            at=AT,
            operation=BACKFILL,
            reads=reads("true", files=["a", "b", "c"]),
        )
        done = judged(mine, winner(remove("a"), ids("b", 0), mark(0)))
        assert written(done) == {"c": (1, 2)}

    def test_it_is_no_excuse_for_other_reads(self):
        mine = prepared(
            add("a", dataChange=False),
            at=AT,
            operation="OPTIMIZE",
            reads=reads("true", files=["x"]),
        )
        outcome = check_conflicts(mine, [winner(remove("x"))])
        assert isinstance(outcome, Conflict)
        assert outcome.code is Code.CONCURRENT_DELETE_READ

    def test_others_take_over_what_it_gave_their_files(self):
        mine = prepared(
            remove("a"),
            add("a", deletionVector=vector(), stats=wide()),
            remove("b"),
            add("c"),
            at=state(
                metadata(properties={"delta.enableDeletionVectors": "true"}),
                features("rowTracking", "domainMetadata", readers=["deletionVectors"]),
            ),
            reads=reads("true", files=["a", "b"]),
            operation="DELETE",
        )
        theirs = winner(ids("a", 0), ids("b", 10), mark(19), operation=BACKFILL)
        done = judged(mine, theirs)
        assert written(done) == {"a": (0, 1), "b": (10, 1), "c": (20, 2)}

    def test_files_that_change_data_are_none(self):
        mine = prepared(remove("x"), at=AT, reads=reads("true", files=["x"]), operation="DELETE")
        for theirs in (winner(add("w"), operation=BACKFILL), winner(ids("w"), operation="WRITE")):
            outcome = check_conflicts(mine, [theirs])
            assert isinstance(outcome, Conflict)
            assert outcome.code is Code.CONCURRENT_APPEND
        assert not only_row_ids(BACKFILL, [remove("x", dataChange=False)])
        assert only_row_ids(UNBACKFILL, [ids("w")])


class TestUnbackfill:
    AT = state(SUSPENDED, ROW_TRACKING)

    def test_files_that_came_with_ids_lose_them(self):
        mine = prepared(
            *(add(path, dataChange=False) for path in "ab"),
            at=self.AT,
            operation=UNBACKFILL,
            reads=reads("true", files=["a", "b"]),
        )
        done = judged(mine, winner(remove("a"), ids("w"), add("v")))
        assert written(done) == {"b": (None, None), "w": (None, None)}
        (again,) = [action for action in done.actions if action.path == "w"]
        assert not again.data_change

    def test_a_backfill_beside_it(self):
        mine = prepared(add("a", dataChange=False), at=self.AT, operation=UNBACKFILL)
        outcome = check_conflicts(mine, [winner(ids("a"), operation=BACKFILL)])
        assert isinstance(outcome, Conflict)
        assert outcome.code is Code.PROTOCOL_CHANGED

    def test_the_name_alone_is_nothing_without_row_tracking(self):
        mine = prepared(add("a"), operation=UNBACKFILL)
        assert row_tracking_rule(mine, winner(ids("w"))) == mine

    def test_dropping_the_feature_does_the_same(self):
        at = state(SUSPENDED, ROW_TRACKING)
        mine = prepared(features("domainMetadata"), at=at, operation="DROP FEATURE")
        assert mine.demands == (FileDemand.NO_ROW_IDS,)
        done = judged(mine, winner(ids("w"), add("v")))
        assert written(done) == {"w": (None, None)}


class TestDemands:
    def test_files_of_a_winner_must_meet_them(self):
        at = state(table_protocol=features(readers=["deletionVectors"]))
        mine = prepared(features(), at=at, operation="DROP FEATURE")
        assert mine.demands == (FileDemand.NO_DELETION_VECTORS,)
        assert demands_rule(mine, winner(add("w"))) == mine
        outcome = demands_rule(mine, winner(add("w", deletionVector=vector())))
        assert isinstance(outcome, Conflict)
        assert (outcome.code, outcome.path) == (Code.PROTOCOL_CHANGED, "w")


class TestClustering:
    COLUMNS = '{"clusteringColumns":[["v"]]}'
    PROTOCOL = features("domainMetadata", "clustering")

    @pytest.mark.parametrize("operation", ["REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT"])
    def test_a_table_that_is_replaced_is_not_clustered_any_more(self, operation):
        table = ledger(table_protocol=self.PROTOCOL)
        table = landed(table, domain("delta.clustering", self.COLUMNS), operation="CLUSTER BY")
        assert table.read(TABLE).domains.keys() == {"delta.clustering"}
        replaced = landed(table, metadata(), operation=operation, read_version=0)
        assert replaced.read(TABLE).domains == {}
        kept = landed(table, add("a"), read_version=0)
        assert kept.read(TABLE).domains.keys() == {"delta.clustering"}

    def test_unless_it_says_how(self):
        table = ledger(table_protocol=self.PROTOCOL)
        mine = domain("delta.clustering", self.COLUMNS)
        table = landed(table, mine, operation="CLUSTER BY")
        assert code(table, mine, operation="REPLACE TABLE") is Code.CONCURRENT_TRANSACTION


class TestIdentity:
    """A winner that did nothing but write down which numbers it gave out."""

    PROTOCOL = features("identityColumns")
    TAG: ClassVar = {"delta.identity.schemaUpdate": "true"}

    def table(self, reached=None, name="v"):
        marks = {"delta.identity.start": 1, "delta.identity.step": 1}
        if reached is not None:
            marks["delta.identity.highWaterMark"] = reached
        column = {"name": name, "type": "long", "nullable": True, "metadata": marks}
        return metadata([column])

    def after(self, theirs, tags):
        before = ledger(self.table(), self.PROTOCOL)
        info = commit_info(timestamp=1, operation="WRITE", tags=tags)
        return foreign(before, info, theirs)

    def test_it_is_tolerated(self):
        table = self.after(self.table(10), self.TAG)
        done = landed(table, add("a"), read_version=0)
        assert "highWaterMark" in done.read(TABLE).metadata.schema_string

    @pytest.mark.parametrize("tags", [None, {}, {"delta.identity.schemaUpdate": "false"}])
    def test_unless_it_does_not_say_so(self, tags):
        assert code(self.after(self.table(10), tags), add("a")) is Code.METADATA_CHANGED

    def test_or_did_more(self):
        theirs = self.table(10, name="w")
        assert code(self.after(theirs, self.TAG), add("a")) is Code.METADATA_CHANGED
        unread = winner(metadata(schemaString="{"), commit_info())
        outcome = check_conflicts(prepared(add("a")), [unread])
        assert isinstance(outcome, Conflict)

    def test_two_that_give_numbers_out_conflict(self):
        table = self.after(self.table(10), self.TAG)
        mine = self.table(5)
        assert code(table, mine, add("a"), tags=self.TAG) is Code.METADATA_CHANGED


def test_a_legacy_protocol_has_no_row_ids():
    mine = prepared(add("a"), at=state(table_protocol=protocol(2, 6)))
    assert written(judged(mine, winner(add("w")))) == {"a": (None, None)}


def test_domains_that_others_write_are_read():
    table = foreign(ledger(table_protocol=ROW_TRACKING), commit_info(), mark(4), domain("d"))
    assert written_paths(landed(table, add("a"))) == {"a": 5}


def written_paths(table):
    return {file.path: file.base_row_id for file in table.read(TABLE).files.values()}

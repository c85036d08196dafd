"""The conflict rules, one by one, and their order."""

import pytest

from tests.builders.actions import add, domain, features, metadata, protocol, remove, txn, unknown
from tests.builders.ledgers import prepared, state, winner
from tests.builders.lines import column, vector
from tests.builders.proposals import reads
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict import checker
from tidegate_protocol.conflict.answer import partition_hint
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.proposal.transaction import Conflict, IsolationLevel, PreparedTransaction

BY_X = state(metadata(["x", "v"], ["x"]))
DOMAINS = state(table_protocol=features("domainMetadata"))


def by_x(**properties):
    return state(metadata(["x", "v"], ["x"], properties))


def passes(transaction, *winners):
    outcome = check_conflicts(transaction, winners)
    assert isinstance(outcome, PreparedTransaction), outcome
    return outcome


def loses(transaction, *winners):
    outcome = check_conflicts(transaction, winners)
    assert isinstance(outcome, Conflict)
    return outcome


class TestJudge:
    def test_the_rules_are_asked_in_deltas_order(self):
        assert [rule.__name__ for rule in checker.RULES] == [
            "unknown_rule",
            "protocol_rule",
            "metadata_rule",
            "domain_rule",
            "application_rule",
            "row_tracking_rule",
            "demands_rule",
            "added_files_rule",
            "removed_read_rule",
            "removed_twice_rule",
            "added_again_rule",
            "vacuum_rule",
        ]

    def test_the_first_rule_that_is_hit_answers(self):
        mine = prepared(
            domain("d"),
            remove("a"),
            remove("b"),
            at=DOMAINS,
            reads=reads("true", files=["a"], app_ids=["app"]),
        )
        theirs = [unknown(), protocol(), metadata(description="d"), domain("d"), txn("app")]
        theirs += [add("c"), remove("a"), remove("b")]
        codes = []
        while theirs:
            codes.append(loses(mine, winner(*theirs)).code)
            theirs.pop(0)
        assert codes == [
            Code.PROTOCOL_CHANGED,
            Code.PROTOCOL_CHANGED,
            Code.METADATA_CHANGED,
            Code.CONCURRENT_TRANSACTION,
            Code.CONCURRENT_TRANSACTION,
            Code.CONCURRENT_APPEND,
            Code.CONCURRENT_DELETE_READ,
            Code.CONCURRENT_DELETE_DELETE,
        ]

    def test_the_first_winner_that_conflicts_answers(self):
        mine = prepared(remove("a"), remove("b"))
        quiet = winner(version=1)
        second = winner(remove("b"), version=2)
        third = winner(remove("a"), version=3)
        conflict = loses(mine, quiet, second, third)
        assert conflict.winner is second
        assert conflict.path == "b"
        assert conflict.detail.startswith("version 2 (WRITE) removed 'b'")

    def test_no_winner_changes_nothing(self):
        mine = prepared(add())
        assert check_conflicts(mine, []) is mine

    def test_it_is_judged_through_the_last_winner(self):
        mine = passes(prepared(add("b")), winner(version=1), winner(version=2))
        assert mine.checked_through == 2
        assert mine.read.version == 0
        assert passes(mine, winner(version=3)).checked_through == 3

    @pytest.mark.parametrize("versions", [[2], [1, 3], [1, 1], [0]])
    def test_a_gap_in_the_history_is_never_no_conflict(self, versions):
        expected = 2 if versions[0] == 1 else 1
        with pytest.raises(ValueError, match=f"expected winner {expected}, found version"):
            check_conflicts(prepared(add("b")), [winner(version=version) for version in versions])

    def test_a_winner_without_an_operation_is_told_by_its_version(self):
        conflict = loses(prepared(remove()), winner(remove(), operation=None))
        assert conflict.detail.startswith("version 1 removed 'a'")


class TestUnknown:
    def test_an_unknown_kind_in_a_winner_cannot_be_judged(self):
        conflict = loses(prepared(add("b")), winner(unknown("sorcery")))
        assert conflict.code is Code.PROTOCOL_CHANGED
        assert (
            conflict.detail
            == "cannot judge: version 1 (WRITE) holds an action of unknown kind 'sorcery'"
        )

    def test_an_unknown_kind_of_ones_own_cannot_be_judged(self):
        mine = prepared(add("b"), unknown("sorcery"))
        conflict = loses(mine, winner())
        assert conflict.code is Code.PROTOCOL_CHANGED
        assert conflict.detail.startswith("cannot judge: version 1")
        assert "'sorcery'" in conflict.detail

    def test_without_winners_it_lands_as_it_is(self):
        mine = prepared(add("b"), unknown("sorcery"))
        assert passes(mine).actions == (add("b"), unknown("sorcery"))


class TestDomains:
    @pytest.mark.parametrize(
        "theirs", [domain("d", "1"), domain("d", "2"), domain("d", removed=True)]
    )
    def test_the_same_domain_conflicts_whatever_it_says(self, theirs):
        conflict = loses(prepared(domain("d", "1"), at=DOMAINS), winner(theirs))
        assert (conflict.code, conflict.domain) == (Code.CONCURRENT_TRANSACTION, "d")

    def test_other_domains_do_not(self):
        mine = prepared(domain("d"), at=DOMAINS)
        passes(mine, winner(domain("D")), winner(domain("e"), version=2))


class TestApplications:
    def test_an_application_that_was_read_must_not_have_moved(self):
        mine = prepared(txn("app", 6), reads=reads(app_ids=["app"]))
        conflict = loses(mine, winner(txn("other"), txn("app", 3)))
        assert (conflict.code, conflict.app_id) == (Code.CONCURRENT_TRANSACTION, "app")

    def test_one_that_was_only_written_may(self):
        passes(prepared(txn("app", 6)), winner(txn("app", 5)))

    def test_ids_are_case_sensitive(self):
        passes(prepared(reads=reads(app_ids=["App"])), winner(txn("app")))


class TestAddedFiles:
    def test_a_file_in_a_partition_that_was_read(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads("x = 1"))
        conflict = loses(mine, winner(add("n", {"x": "2"}), add("m", {"x": "1"})))
        assert conflict.code is Code.CONCURRENT_APPEND
        assert conflict.path == "m"
        assert conflict.partition == {"x": "1"}

    def test_a_file_in_another_partition(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads("x = 1"))
        passes(mine, winner(add("n", {"x": "2"})))

    def test_any_file_of_an_unpartitioned_table_for_a_transaction_that_is_not_blind(self):
        conflict = loses(prepared(remove("a")), winner(add("n")))
        assert conflict.code is Code.CONCURRENT_APPEND
        assert conflict.partition is None

    def test_a_blind_append_has_read_nothing(self):
        passes(prepared(add("b")), winner(add("n"), remove("a")))

    def test_files_without_data_change_count(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads("x = 1"))
        conflict = loses(mine, winner(add("n", {"x": "1"}, dataChange=False)))
        assert conflict.code is Code.CONCURRENT_APPEND

    def test_snapshot_isolation_does_not_look(self):
        mine = prepared(
            remove("a", dataChange=False),
            add("b", {"x": "1"}, dataChange=False),
            at=BY_X,
            reads=reads("x = 1"),
            operation="OPTIMIZE",
        )
        assert mine.isolation_level is IsolationLevel.SNAPSHOT_ISOLATION
        passes(mine, winner(add("n", {"x": "1"})))

    def test_serializable_counts_blind_appends(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads("x = 1"))
        loses(mine, winner(add("n", {"x": "1"}), blind=True))

    def test_write_serializable_spares_blind_appends_and_nothing_else(self):
        at = by_x(**{"delta.isolationLevel": "WriteSerializable"})
        mine = prepared(add("b", {"x": "1"}), at=at, reads=reads("x = 1"))
        passes(mine, winner(add("n", {"x": "1"}), blind=True))
        assert loses(mine, winner(add("n", {"x": "1"}))).code is Code.CONCURRENT_APPEND

    def test_write_serializable_spares_no_blind_append_when_the_metadata_changes(self):
        at = by_x(**{"delta.isolationLevel": "WriteSerializable"})
        new = metadata(["x", "v"], ["x"], {"delta.isolationLevel": "WriteSerializable"}, name="n")
        mine = prepared(new, at=at, reads=reads("x = 1"), operation="SET TBLPROPERTIES")
        loses(mine, winner(add("n", {"x": "1"}), blind=True))

    def test_an_explicit_level_overrules_the_tables(self):
        at = by_x(**{"delta.isolationLevel": "WriteSerializable"})
        mine = prepared(
            add("b", {"x": "1"}),
            at=at,
            reads=reads("x = 1"),
            isolation_level=IsolationLevel.SERIALIZABLE,
        )
        loses(mine, winner(add("n", {"x": "1"}), blind=True))


class TestStatistics:
    STATS = '{"numRecords":1,"minValues":{"v":1},"maxValues":{"v":5},"nullCount":{"v":0}}'

    def test_by_default_they_are_not_looked_at(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads("v > 100"))
        loses(mine, winner(add("n", {"x": "1"}, stats=self.STATS)))

    def test_a_table_may_ask_for_proof_of_disjointness(self):
        at = by_x(**{"tidegate.statisticsDisjointness": "true"})
        mine = prepared(add("b", {"x": "1"}), at=at, reads=reads("v > 100"))
        passes(mine, winner(add("n", {"x": "1"}, stats=self.STATS)))
        assert loses(mine, winner(add("n", {"x": "1"}))).path == "n"


class TestRemovedReads:
    def test_a_file_that_was_read(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads(files=["a"]))
        conflict = loses(mine, winner(remove("z"), remove("a")))
        assert conflict.code is Code.CONCURRENT_DELETE_READ
        assert conflict.path == conflict.read_file == "a"
        assert conflict.partition is None

    def test_a_file_that_was_not_read(self):
        passes(prepared(add("b"), reads=reads(files=["a"])), winner(remove("z")))

    def test_the_deletion_vector_does_not_matter(self):
        mine = prepared(add("b"), reads=reads(files=["a"]))
        loses(mine, winner(remove("a", deletionVector=vector())))

    def test_paths_are_compared_decoded(self):
        mine = prepared(add("b"), reads=reads(files=["x=a%20b/p"]))
        loses(mine, winner(remove("x=a b/p")))

    def test_any_file_where_the_whole_table_was_read(self):
        mine = prepared(add("b", {"x": "1"}), at=BY_X, reads=reads(whole_table=True))
        conflict = loses(mine, winner(remove("z", partitionValues={"x": "1"})))
        assert conflict.code is Code.CONCURRENT_DELETE_READ
        assert (conflict.read_file, conflict.partition) == (None, None)

    def test_under_snapshot_isolation_too(self):
        mine = prepared(at=BY_X, reads=reads("x = 1", files=["a"]), operation="DELETE")
        assert mine.isolation_level is IsolationLevel.SNAPSHOT_ISOLATION
        assert loses(mine, winner(remove("a"))).code is Code.CONCURRENT_DELETE_READ


class TestHint:
    @pytest.mark.parametrize(
        ("table", "values", "hint"),
        [
            (metadata(["x", "y", "v"], ["x", "y"]), {"x": "1", "y": None}, {"x": "1", "y": None}),
            (metadata(["x", "y", "v"], ["x", "y"]), {"x": "1"}, {"x": "1", "y": None}),
            (metadata(["x", "v"], ["x"]), {}, None),
            (metadata(["x", "v"], ["x"]), None, None),
            (metadata(["x", "v"]), {"x": "1"}, None),
            (None, {"x": "1"}, None),
            (metadata(["v"], ["lost"]), {"lost": "1"}, {"lost": "1"}),
            (
                metadata(
                    [column("x", **{"delta.columnMapping.physicalName": "col-7"}), "v"], ["x"]
                ),
                {"col-7": "1"},
                {"x": "1"},
            ),
        ],
    )
    def test_it_has_the_partition_columns_by_name(self, table, values, hint):
        assert partition_hint(table, values) == hint


class TestRemovedTwice:
    def test_a_file_that_both_remove(self):
        mine = prepared(remove("z"), remove("a", partitionValues={"x": "1"}), at=BY_X)
        conflict = loses(mine, winner(remove("a")))
        assert conflict.code is Code.CONCURRENT_DELETE_DELETE
        assert conflict.path == "a"
        assert conflict.partition == {"x": "1"}

    def test_without_extended_metadata_there_is_no_hint(self):
        conflict = loses(
            prepared(remove("a"), at=BY_X), winner(remove("a", partitionValues={"x": "1"}))
        )
        assert conflict.partition is None

    def test_the_deletion_vector_does_not_matter(self):
        mine = prepared(remove("a", deletionVector=vector("vBn[lx{q8@P<9BNH/isB")), at=BY_X)
        loses(mine, winner(remove("a", deletionVector=vector())))

    def test_paths_are_compared_decoded(self):
        loses(prepared(remove("a%2Db"), at=BY_X), winner(remove("a-b")))

    def test_different_files(self):
        passes(prepared(remove("a")), winner(remove("b")))


class TestVacuums:
    """A RESTORE looks whether its files are there, and a vacuum deletes them before it lands."""

    @pytest.mark.parametrize("operation", ["VACUUM START", "VACUUM END"])
    def test_a_restore_of_files_loses_to_one(self, operation):
        mine = prepared(add("old"), operation="RESTORE")
        answer = loses(mine, winner(operation=operation))
        assert answer.code is Code.CONCURRENT_DELETE_READ
        assert f"version 1 ({operation}) deletes files" in answer.detail

    @pytest.mark.parametrize(
        ("actions", "operation"), [([remove("a")], "RESTORE"), ([add("a")], "WRITE")]
    )
    def test_what_brings_no_file_back_does_not(self, actions, operation):
        passes(prepared(*actions, operation=operation), winner(operation="VACUUM START"))

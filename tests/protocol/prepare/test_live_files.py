"""What file actions say of live files: at the read version, and against winners."""

import pytest

from tests.builders.actions import add, features, metadata, remove
from tests.builders.ledgers import landed, ledger
from tests.builders.lines import vector, wide
from tests.protocol.racing import answer, code, foreign, refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.prepare.live_files import assumptions_of
from tidegate_protocol.proposal.transaction import Invalid, ReadState

FIRST, SECOND = vector(offset=1), vector(offset=50)
FILE = ("p", FIRST["storageType"] + FIRST["pathOrInlineDv"] + "@1")
"""As the index of live files has `p` with the first vector."""
DELETE = {"operation": "DELETE"}


def marked(given=FIRST, **fields):
    return add("p", deletionVector=given, stats=wide(), **fields)


def removed(given=FIRST, **fields):
    return remove("p", deletionVector=given, **fields)


def table(*files):
    """With deletion vectors; the files are of version 1."""
    on = metadata(properties={"delta.enableDeletionVectors": "true"})
    return landed(ledger(on, features(readers=["deletionVectors"])), *files)


def invalid(before, *actions, **fields):
    outcome = answer(before, *actions, **{"read_version": 1, **fields})
    assert isinstance(outcome, Invalid), outcome
    return outcome.code, outcome.action_index, outcome.path


def lands(before, *actions, **fields):
    outcome = answer(before, *actions, **{"read_version": 1, **fields})
    assert isinstance(outcome, Ratified), outcome
    return [key for key in outcome.commit.snapshot.files if key[0] == "p"]


class TestAtTheReadVersion:
    @pytest.mark.parametrize("gone", [remove("p"), removed(SECOND)], ids=["no vector", "another"])
    @pytest.mark.parametrize("again", [(), (marked(vector(offset=99)),)], ids=["whole", "marked"])
    def test_a_remove_names_the_vector_of_the_add(self, gone, again):
        found = invalid(table(marked()), add("x"), gone, *again, **DELETE)
        assert found == (Code.INVALID_ACTION, 1, "p")

    def test_a_remove_of_no_live_file(self):
        assert invalid(ledger(), remove("p"), read_version=0) == (Code.INVALID_ACTION, 0, "p")
        gone = landed(landed(ledger(), add("p")), remove("p"))
        assert invalid(gone, remove("p"), read_version=2) == (Code.INVALID_ACTION, 0, "p")

    def test_a_file_that_came_later_is_none_either(self):
        before = landed(ledger(), add("p"))
        # Without data change, no added file is a conflict.
        found = invalid(before, remove("p", dataChange=False), read_version=0, operation="OPTIMIZE")
        assert found == (Code.INVALID_ACTION, 0, "p")

    def test_the_order_of_add_and_remove_does_not_matter(self):
        found = invalid(table(add("p")), marked(SECOND), removed(), **DELETE)
        assert found == (Code.INVALID_ACTION, 1, "p")

    def test_the_first_commit_removes_nothing(self):
        nothing = ReadState(version=-1, protocol=None, metadata=None)
        found = refused(features(), metadata(), remove("p"), at=nothing)
        assert (found.code, found.path) == (Code.INVALID_ACTION, "p")

    @pytest.mark.parametrize("live", [add("p"), marked(SECOND)], ids=["no vector", "another"])
    def test_a_vector_comes_with_the_remove_of_the_one_before(self, live):
        found = invalid(table(live), add("x"), marked(), **DELETE)
        assert found == (Code.DELETION_VECTOR_WITHOUT_REMOVE, 1, "p")

    def test_and_goes_with_a_remove(self):
        found = invalid(table(marked()), add("p"))
        assert found == (Code.DELETION_VECTOR_WITHOUT_REMOVE, 0, "p")
        # Also where the read version is the head.
        assert invalid(table(marked()), add("p"), read_version=None)[0] is found[0]

    def test_legal_ones_land(self):
        one = [("p", SECOND["storageType"] + SECOND["pathOrInlineDv"] + "@50")]
        assert lands(table(marked()), removed(), marked(SECOND), **DELETE) == one
        assert lands(table(marked()), removed(), **DELETE) == []
        assert lands(table(marked()), removed(), add("p")) == [("p", None)]
        assert lands(table(marked(SECOND)), marked(SECOND, dataChange=False)) == one
        assert lands(table(add("p")), add("p", dataChange=False)) == [("p", None)]

    def test_a_path_that_was_live_once_comes_back(self):
        before = landed(table(add("p")), remove("p"))
        assert lands(before, add("p"), read_version=2, operation="RESTORE") == [("p", None)]

    def test_of_a_file_that_others_made_live_twice_each_can_be_removed(self):
        """What is in a plain table's log is what the table is."""
        before = foreign(table(add("p")), marked())
        assert lands(before, remove("p"), read_version=2) == [FILE]
        found = invalid(before, add("p", dataChange=False), read_version=2)
        assert found[0] is Code.DELETION_VECTOR_WITHOUT_REMOVE


class TestAgainstWinners:
    @pytest.mark.parametrize("change", [True, False])
    @pytest.mark.parametrize("winner", [(), (marked(),)], ids=["removed", "marked"])
    def test_a_file_is_not_committed_again(self, winner, change):
        before = landed(table(add("p")), remove("p"), *winner, **DELETE)
        again = add("p", dataChange=change, stats=wide())
        found = code(before, again, read_version=1, operation="COMPUTE STATS")
        assert found is Code.CONCURRENT_DELETE_READ

    def test_nor_with_another_vector_than_a_winner_gave_it(self):
        restored = landed(table(), marked(), operation="RESTORE")
        assert code(restored, add("p"), read_version=1) is Code.CONCURRENT_APPEND
        plain = landed(table(), add("p"), operation="RESTORE")
        assert code(plain, marked(), read_version=1) is Code.CONCURRENT_APPEND
        assert lands(plain, add("p")) == [("p", None)]

    def test_a_remove_is_of_the_file_that_the_winner_committed_again(self):
        before = landed(table(add("p")), add("p", dataChange=False), operation="COMPUTE STATS")
        gone = remove("p", dataChange=False)
        vectors = lands(before, gone, marked(dataChange=False), operation="OPTIMIZE")
        assert vectors == [FILE]

    def test_also_where_it_takes_the_feature_away(self):
        before = landed(table(), marked(), operation="COMPUTE STATS")
        off = (metadata(), features())
        found = code(before, *off, add("p"), read_version=1, operation="DROP FEATURE")
        assert found is Code.CONCURRENT_APPEND

    def test_and_at_the_read_version(self):
        off = (metadata(), features())
        found = invalid(table(marked()), *off, add("p"), operation="DROP FEATURE")
        assert found == (Code.DELETION_VECTOR_WITHOUT_REMOVE, 2, "p")

    def test_row_ids_are_taken_from_the_file_that_a_winner_marked(self):
        """The winner's file is committed again, not the one that was read."""
        again = add("p", dataChange=False)
        with_ids = features("rowTracking", "domainMetadata", readers=["deletionVectors"])
        before = landed(ledger(metadata(), with_ids), add("p"))
        given = {"baseRowId": 0, "defaultRowCommitVersion": 1}
        before = foreign(before, remove("p"), marked(**given))
        found = lands(before, again, operation="ROW TRACKING UNBACKFILL")
        assert [vector is None for _, vector in found] == [False]

    def test_what_another_writer_made_of_the_path_is_carried(self):
        before = foreign(landed(table(add("p")), remove("p"), marked(), **DELETE), add("p"))
        own = removed(dataChange=False), marked(SECOND, dataChange=False)
        found = lands(before, *own, read_version=2, operation="OPTIMIZE")
        assert set(found) == {("p", None), ("p", FILE[1].replace("@1", "@50"))}

    def test_others_files_are_none_of_its_business(self):
        before = landed(table(add("p"), add("q")), remove("q"))
        assert lands(before, add("p", dataChange=False)) == [("p", None)]


def test_adds_are_looked_up_where_files_may_have_vectors():
    actions = [remove("p"), add("p"), add("q"), remove("r")]
    assert [assumptions_of(actions, vectors=vectors).count for vectors in (False, True)] == [2, 3]


def test_an_add_without_data_change_is_no_blind_append():
    before = landed(ledger(), add("p"))
    for change in (True, False):
        outcome = answer(before, add("p", dataChange=change), read_version=1)
        assert outcome.commit.actions[0].is_blind_append is change

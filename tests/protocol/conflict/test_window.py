"""A window of commits judges as the rules do, asking fewer of them."""

import pytest

from tests.builders.actions import add, domain, features, metadata, remove, unknown
from tests.builders.ledgers import prepared, state, winner
from tests.builders.lines import vector
from tests.builders.proposals import reads
from tests.protocol.window_tables import BACKFILL, SUPPORTED, WEAK, at
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.window import CommitWindow
from tidegate_protocol.proposal.transaction import PreparedTransaction, WinningCommit


def held(*winners: WinningCommit, after: int = 0) -> CommitWindow:
    window = CommitWindow(after=after)
    for each in winners:
        window.append(each)
    return window


class TestWhatIsHeld:
    def test_an_empty_window_ends_where_it_begins(self):
        window = CommitWindow(after=7)
        assert (window.after, window.through, window.weight) == (7, 7, 0)
        assert list(window.winners(7)) == []
        assert not window.changes_table(7)

    def test_commits_are_held_in_order_and_without_a_gap(self):
        window = held(winner(add("a"), version=8), after=7)
        assert window.through == 8
        for version in (7, 8, 10):
            with pytest.raises(ValueError, match=f"expected winner 9, found version {version}"):
                window.append(winner(version=version))

    def test_it_says_so_where_it_begins_too_late(self):
        window = held(winner(version=8), after=7)
        for ask in (
            lambda: window.winners(6),
            lambda: window.changes_table(6),
            lambda: window.check_conflicts(prepared(add("b"), at=state(version=6))),
        ):
            with pytest.raises(ValueError, match="expected the commits after 6"):
                ask()

    def test_a_transaction_that_read_the_newest_version_passes_as_it_is(self):
        mine = prepared(add("b"), at=state(version=8))
        assert held(winner(version=8), after=7).check_conflicts(mine) is mine

    def test_it_tells_whether_the_table_itself_changed(self):
        window = held(winner(version=1), winner(metadata(), version=2), winner(version=3))
        assert [window.changes_table(after) for after in range(4)] == [True, True, False, False]
        window.drop_after(1)
        assert not window.changes_table(0)
        window.append(winner(features("invariants"), version=2))
        assert window.changes_table(1)

    def test_taking_back_more_than_is_held_leaves_nothing(self):
        window = held(winner(add("a"), version=8), after=7)
        window.drop_after(5)
        assert (window.after, window.through, window.weight) == (5, 5, 0)
        window.append(winner(version=6))

    def test_judging_weighs_what_is_looked_at(self):
        window = held(*(winner(remove("a"), version=v) for v in range(1, 5)))
        all_of_them = window.weight
        blind = prepared(add("b"), at=state(version=4))
        assert window.weight_of(blind) == 0
        earlier = prepared(add("b"), at=state(version=0))
        assert window.weight_of(earlier) == all_of_them + 1
        reader = prepared(remove("b"), at=state(version=3), reads=reads(files=["b"]))
        # Once for all, whoever comes first.
        assert window.weight_of(reader) == all_of_them
        window.check_conflicts(reader)
        assert window.weight_of(reader) == window.weight_after(3)
        # What it adds may be what they removed.
        assert window.weight_of(earlier) == 1
        window.append(winner(domain("d"), version=5))
        assert window.weight_of(blind) == window.weight_after(4) + len(blind.actions)
        assert window.weight_of(reader) == window.weight_after(3) + len(reader.actions)

    def test_what_meets_every_winner_weighs_its_actions_for_each(self):
        window = held(*(winner(add("a"), version=v) for v in range(1, 5)))
        files = (add(path, {"x": "1"}, stats='{"numRecords":1}') for path in "bcdef")
        mine = prepared(*files, at=at("row-ids"))
        assert window.weight_of(mine) == window.weight + 4 * len(mine.actions)

    def test_the_oldest_are_forgotten_by_number_and_by_weight(self):
        window = held(*(winner(add("a"), add("b"), version=v) for v in range(1, 6)))
        assert window.weight == 15
        window.trim(commits=5, weight=15)
        assert window.after == 0
        window.trim(commits=4, weight=15)
        assert (window.after, window.weight) == (1, 12)
        window.trim(commits=4, weight=7)
        assert (window.after, window.through, window.weight) == (3, 5, 6)
        window.trim(commits=4, weight=0)
        assert (window.after, window.through, window.weight) == (5, 5, 0)

    def test_what_came_after_a_version_is_weighed(self):
        window = held(*(winner(add("a"), add("b"), version=v) for v in range(3, 6)), after=2)
        assert [window.weight_after(version) for version in (0, 2, 4, 5)] == [9, 9, 3, 0]


def reader_of(x: str, version: int) -> PreparedTransaction:
    mine = add("mine", {"x": x})
    return prepared(mine, at=at("partitioned", version), reads=reads(f"x = {x}"))


def adds_to(x: str, version: int) -> WinningCommit:
    return winner(add(f"n{version}", {"x": x}), version=version)


class TestAfterSomeWereJudged:
    """What was looked into for one transaction is right for the next."""

    @pytest.fixture
    def window(self):
        window = held(adds_to("1", 1), adds_to("0", 2), adds_to("1", 3))
        assert window.check_conflicts(reader_of("0", 1)).winner.version == 2
        return window

    def test_what_was_taken_back_hides_nobody(self, window):
        window.drop_after(2)
        assert window.check_conflicts(reader_of("0", 1)).winner.version == 2

    def test_what_was_taken_back_is_met_by_nobody(self, window):
        window.drop_after(2)
        assert window.check_conflicts(reader_of("1", 1)).checked_through == 2

    def test_what_comes_in_its_place_is_met(self, window):
        window.drop_after(2)
        window.append(adds_to("2", 3))
        assert window.check_conflicts(reader_of("1", 1)).checked_through == 3
        assert window.check_conflicts(reader_of("2", 1)).winner.version == 3

    def test_what_is_left_is_met_when_the_oldest_are_forgotten(self, window):
        window.trim(commits=1, weight=100)
        assert window.check_conflicts(reader_of("1", 2)).winner.version == 3
        assert window.check_conflicts(reader_of("0", 2)).checked_through == 3

    def test_who_was_never_looked_into_is_met_when_others_are_forgotten(self):
        window = held(adds_to("1", 1), adds_to("0", 2), adds_to("1", 3))
        window.trim(commits=2, weight=100)
        assert window.check_conflicts(reader_of("0", 1)).winner.version == 2


class TestWhereEvenQuietWinnersMatter:
    def test_with_row_ids(self):
        again = {"baseRowId": 7, "defaultRowCommitVersion": 1, "dataChange": False}
        window = held(winner(add("a", {"x": "1"}, **again), version=1, operation=BACKFILL))
        mine = prepared(add("a", {"x": "1"}, dataChange=False), at=at("row-ids"), operation="X")
        assert mine.actions[0].base_row_id is None
        assert window.check_conflicts(mine).actions[0].base_row_id == 7

    def test_with_row_ids_that_came_in_between(self):
        raised = winner(features(*SUPPORTED, "rowTracking"), version=1)
        again = {"baseRowId": 7, "defaultRowCommitVersion": 2, "dataChange": False}
        backfill = winner(add("a", {"x": "1"}, **again), version=2, operation=BACKFILL)
        mine = prepared(add("a", {"x": "1"}, dataChange=False), at=at("partitioned"), operation="X")
        assert held(raised, backfill).check_conflicts(mine).actions[0].base_row_id == 7

    def test_to_who_asks_something_of_every_file(self):
        window = held(winner(add("w", deletionVector=vector()), version=1))
        table = state(table_protocol=features(readers=["deletionVectors"]))
        mine = prepared(features(), at=table, operation="DROP FEATURE")
        assert window.check_conflicts(mine).code is Code.PROTOCOL_CHANGED

    def test_to_who_does_what_nobody_understands(self):
        window = held(winner(add("w"), version=1))
        mine = prepared(add("b"), unknown(), at=at("plain"))
        assert window.check_conflicts(mine).code is Code.PROTOCOL_CHANGED

    def test_that_append_blindly_to_who_changes_the_table(self):
        window = held(winner(add("w", {"x": "1"}), version=1, blind=True))
        changed = metadata(["x", "v"], ["x"], WEAK, description="d")
        what = {"at": at("weak"), "reads": reads("x = 1")}
        assert (
            window.check_conflicts(prepared(changed, operation="X", **what)).code
            is Code.CONCURRENT_APPEND
        )
        assert window.check_conflicts(prepared(add("b", {"x": "1"}), **what)).checked_through == 1

    def test_that_do_not_append_blindly_to_who_is_spared_others(self):
        window = held(winner(add("w", {"x": "1"}), version=1))
        mine = prepared(add("b", {"x": "1"}), at=at("weak"), reads=reads("x = 1"))
        assert window.check_conflicts(mine).code is Code.CONCURRENT_APPEND


def test_a_winner_that_two_of_its_files_bring_up_is_judged_once():
    far = {"stats": '{"numRecords":1,"minValues":{"v":1},"maxValues":{"v":1}}'}
    window = held(winner(add("n", {"x": "1"}, **far), add("m", {"x": "2"}, **far)))
    mine = prepared(add("b", {"x": "1"}), at=at("sparing-by-x"), reads=reads("x < 5 AND v = 9"))
    assert window.check_conflicts(mine).checked_through == 1

"""A window of commits judges as the rules do, asking fewer of them."""

import pytest

from tests.builders.actions import add, domain, features, metadata, remove, txn, unknown
from tests.builders.ledgers import prepared, state, winner
from tests.builders.lines import vector
from tests.builders.proposals import reads
from tests.protocol.log.test_bulk import Held
from tests.protocol.window_tables import BACKFILL, SUPPORTED, WEAK, at
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.conflict.window import CommitWindow
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.codec import decode, encode
from tidegate_protocol.log.spooled import Spooled
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction, WinningCommit
from tidegate_protocol.replay.commits import summarize


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
        blind = prepared(add("b"), at=state(version=0))
        assert window.weight_of(blind) == 0
        reader = prepared(remove("b"), at=state(version=3), reads=reads(files=["b"]))
        # Once for all, whoever comes first.
        assert window.weight_of(reader) == all_of_them
        window.check_conflicts(reader)
        assert window.weight_of(reader) == window.weight_after(3)
        window.append(winner(domain("d"), version=5))
        assert window.weight_of(blind) == window.weight + len(blind.actions)
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

    @pytest.mark.parametrize(
        ("action", "kilobytes"),
        [
            (add("a", {"x": "v" * 2900}), 2),
            (remove("r" * 1024), 1),
            # Few bytes, and an object for each of them.
            (add("a", tags={f"{tag:02x}": "" for tag in range(250)}), 24),
        ],
    )
    def test_actions_whose_bytes_are_elsewhere_weigh_what_they_hold(self, action, kilobytes):
        (kept,) = BulkDecoder(Held).keep([action])
        assert isinstance(kept, Spooled)
        assert held(winner(kept)).weight == held(winner(add("a"))).weight + kilobytes


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


class TestWhoIsAsked:
    """Only the winners that a transaction may meet: seen from the rules that are asked."""

    @pytest.fixture
    def asked(self, monkeypatch):
        versions: list[int] = []

        def judged(txn, found):
            found = list(found)
            versions.extend(each.version for each in found)
            return check_conflicts(txn, found)

        monkeypatch.setattr("tidegate_protocol.conflict.checker.check_conflicts", judged)
        return versions

    def test_a_blind_append_meets_no_quiet_winner(self, asked):
        window = held(
            winner(add("a"), version=1),
            winner(remove("a"), txn("app"), version=2),
            winner(domain("d"), version=3),
            winner(add("c"), version=4),
        )
        outcome = window.check_conflicts(prepared(add("b"), at=at("plain")))
        assert outcome.checked_through == 4
        assert asked == [3]

    def test_a_reader_of_a_partition_meets_who_adds_to_it(self, asked):
        window = held(
            *(winner(add(f"n{v}", {"x": str(v)}), version=v) for v in range(1, 50)),
            winner(add("n50", {"x": "7"}), version=50),
        )
        mine = prepared(add("b", {"x": "7"}), at=at("partitioned", 7), reads=reads("x = 7"))
        outcome = window.check_conflicts(mine)
        assert isinstance(outcome, Conflict)
        assert (outcome.code, outcome.winner.version) == (Code.CONCURRENT_APPEND, 50)
        assert asked == [50]

    def test_who_only_gives_row_ids_adds_nothing(self, asked):
        again = add("n", {"x": "1"}, dataChange=False)
        window = held(winner(again, operation=BACKFILL))
        mine = prepared(add("b", {"x": "1"}), at=at("partitioned"), reads=reads("x = 1"))
        assert window.check_conflicts(mine).checked_through == 1
        assert asked == []

    def test_who_is_met_twice_is_asked_once(self, asked):
        far = {"stats": '{"numRecords":1,"minValues":{"v":1},"maxValues":{"v":1}}'}
        window = held(winner(add("n", {"x": "1"}, **far), add("m", {"x": "2"}, **far)))
        mine = prepared(add("b", {"x": "1"}), at=at("sparing-by-x"), reads=reads("x < 5 AND v = 9"))
        assert window.check_conflicts(mine).checked_through == 1
        assert asked == [1]

    def test_who_removes_and_reads_files_meets_who_removes_them(self, asked):
        window = held(*(winner(remove(f"f{v}"), version=v) for v in range(1, 50)))
        one = prepared(remove("mine"), at=at("plain"), reads=reads(files=["f20"]))
        assert window.check_conflicts(one).winner.version == 20
        other = prepared(remove("f30"), at=at("plain"), reads=reads(files=["mine"]))
        assert window.check_conflicts(other).code is Code.CONCURRENT_DELETE_DELETE
        assert asked == [20, 30]

    def test_who_read_the_whole_table_meets_whoever_changes_files(self, asked):
        window = held(
            winner(txn("app"), version=1), winner(domain("e"), version=2), winner(version=3)
        )
        added, removed = winner(add("n"), version=4), winner(remove("o"), version=4)
        for last, code in (
            (added, Code.CONCURRENT_APPEND),
            (removed, Code.CONCURRENT_DELETE_READ),
        ):
            window.drop_after(3)
            window.append(last)
            mine = prepared(add("b"), at=at("plain"), reads=reads(whole_table=True))
            assert window.check_conflicts(mine).code is code
        assert asked == [2, 4, 2, 4]

    def test_who_read_an_application_meets_its_transactions(self, asked):
        window = held(*(winner(txn(f"app-{v}"), version=v) for v in range(1, 50)))
        mine = prepared(add("b"), at=at("plain"), reads=reads(app_ids=["app-9"]))
        assert window.check_conflicts(mine).app_id == "app-9"
        assert asked == [9]

    def test_with_row_ids_every_winner_is_asked(self, asked):
        window = held(*(winner(add(f"n{v}", {"x": "1"}), version=v) for v in range(1, 9)))
        assert (
            window.check_conflicts(prepared(add("b", {"x": "2"}), at=at("row-ids"))).checked_through
            == 8
        )
        assert asked == list(range(1, 9))


def test_long_actions_weigh_as_much_as_many():
    window = CommitWindow(after=0)
    for version in range(1, 4):
        action = decode(encode(add("a", tags={"a": "b" * 10_240})))
        window.append(summarize(version, [action], timestamp_fallback=0))
    assert window.weight == 3 * 11
    window.trim(commits=100, weight=22)
    assert (window.after, window.weight) == (1, 22)

"""Row ids: who gets which, whatever the race."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.actions import add, commit_info, decoded, domain, features, metadata, remove
from tests.builders.ledgers import NOW, TABLE, landed, ledger, prepared, state, winner
from tests.builders.proposals import proposal
from tests.protocol.racing import code, foreign, refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import row_tracking
from tidegate_protocol.features.row_tracking import (
    DOMAIN,
    MAX_ROW_ID,
    NO_ROW_IDS,
    InvalidHighWaterMark,
    high_water_mark,
    mark_before,
)
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.log.actions import Add, DomainMetadata
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import Invalid, ReadState

ROW_TRACKING = features("rowTracking", "domainMetadata")
ENABLE = {"delta.enableRowTracking": "true"}
SUSPEND = {"delta.rowTrackingSuspended": "true"}
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"


def rows(count):
    return json.dumps({"numRecords": count})


def mark(value):
    return domain(DOMAIN, json.dumps({"rowIdHighWaterMark": value}))


def given_out(table):
    """Path to (base row id, default row commit version) of every live file."""
    return {
        file.path: (file.base_row_id, file.default_row_commit_version)
        for file in table.read(TABLE).files.values()
    }


def highest(table):
    return table.read(TABLE).read_state.row_id_high_water_mark


class TestGivingOut:
    def test_files_get_ids_in_their_order_and_the_version_they_land_as(self):
        table = landed(ledger(table_protocol=ROW_TRACKING), add("a", stats=rows(7)))
        table = landed(table, add("b", stats=rows(1)), add("c", stats=rows(5)))
        assert given_out(table) == {"a": (0, 1), "b": (7, 2), "c": (8, 2)}
        assert highest(table) == 12

    def test_files_of_the_first_version_get_them_too(self):
        first = proposal(
            ROW_TRACKING,
            metadata(),
            add("a", stats=rows(3)),
            read_version=-1,
            operation="CREATE TABLE AS SELECT",
        )
        table, _ = type(ledger())().create(TABLE, first, now_ms=NOW)
        assert given_out(table) == {"a": (0, 0)}
        assert highest(table) == 2

    def test_a_commit_without_new_files_writes_no_mark(self):
        table = landed(ledger(table_protocol=ROW_TRACKING), add("a"))
        after = landed(table, remove("a"))
        (written,) = after.tables[TABLE].commits[-1:]
        assert not any(isinstance(action, DomainMetadata) for action in written.actions)
        assert highest(after) == 0

    def test_other_tables_are_left_alone(self):
        table = landed(ledger(), add("a", baseRowId=9, defaultRowCommitVersion=9))
        assert given_out(table) == {"a": (9, 9)}

    @given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=2, max_size=5))
    def test_no_id_is_given_out_twice_whatever_the_race(self, commits):
        table = ledger(table_protocol=ROW_TRACKING)
        for number, counts in enumerate(commits):
            files = [add(f"{number}-{i}", stats=rows(n)) for i, n in enumerate(counts)]
            # Each was prepared at version 0, and each is moved past all that came before it.
            table = landed(table, *files, read_version=0)
        ids = [
            number
            for file in table.read(TABLE).files.values()
            for number in range(file.base_row_id, file.base_row_id + row_tracking.row_count(file))
        ]
        assert sorted(ids) == list(range(sum(map(sum, commits))))
        assert highest(table) == len(ids) - 1


class TestMoving:
    def test_ids_that_a_writer_chose_itself_are_chosen_again(self):
        table = landed(ledger(table_protocol=ROW_TRACKING), add("a", stats=rows(10)))
        mine = add("mine", stats=rows(2), baseRowId=10, defaultRowCommitVersion=2)
        table = landed(table, add("theirs", stats=rows(5)))
        table = landed(table, mine, read_version=1)
        assert given_out(table) == {"a": (0, 1), "theirs": (10, 2), "mine": (15, 3)}

    def test_ids_of_a_file_that_is_committed_again_stay(self):
        table = landed(ledger(table_protocol=ROW_TRACKING), add("a", stats=rows(10)))
        again = add("a", stats=rows(10), baseRowId=0, defaultRowCommitVersion=1, dataChange=False)
        table = landed(table, add("theirs", stats=rows(5)))
        table = landed(table, again, read_version=1, operation="COMPUTE STATS")
        assert given_out(table) == {"a": (0, 1), "theirs": (10, 2)}
        assert highest(table) == 14

    def test_ids_that_only_begin_below_the_highest_are_chosen_again(self):
        """As of a file from before the feature was dropped and its ids began anew."""
        table = landed(ledger(table_protocol=ROW_TRACKING), add("a", stats=rows(10)))
        mine = add("older", stats=rows(100), baseRowId=0, defaultRowCommitVersion=1)
        table = landed(table, mine, operation="RESTORE")
        assert given_out(table) == {"a": (0, 1), "older": (10, 1)}
        assert highest(table) == 109

    def test_a_commit_version_of_its_own_is_enough(self):
        table = landed(ledger(table_protocol=ROW_TRACKING), add("a", stats=rows(10)))
        again = add("a", stats=rows(10), baseRowId=0, dataChange=False)
        assert given_out(landed(table, again, operation="COMPUTE STATS")) == {"a": (0, 2)}


class TestSuspended:
    AT = (metadata(properties=SUSPEND), ROW_TRACKING)

    def test_nothing_is_given_out_and_nothing_kept(self):
        table = landed(ledger(*self.AT), add("a"), add("b", baseRowId=0), add("c", stats=None))
        assert given_out(table) == dict.fromkeys("abc", (None, None))
        assert highest(table) == NO_ROW_IDS

    def test_it_excludes_that_row_tracking_is_on(self):
        both = metadata(properties={**SUSPEND, **ENABLE})
        at = state(metadata(), ROW_TRACKING)
        invalid = refused(both, at=at, operation="SET TBLPROPERTIES")
        assert invalid.code is Code.INVALID_ACTION
        assert "rowTrackingSuspended" in invalid.detail


class TestRefusals:
    AT = state(table_protocol=ROW_TRACKING)

    @pytest.mark.parametrize("stats", [None, "{}"])
    def test_files_need_the_number_of_their_rows(self, stats):
        invalid = refused(add("a"), add("b", stats=stats), at=self.AT)
        assert (invalid.code, invalid.action_index, invalid.path) == (Code.INVALID_ACTION, 1, "b")
        assert "numRecords" in invalid.detail

    def test_the_place_is_that_in_the_proposal(self):
        raised = features("rowTracking", "domainMetadata")
        at = state(table_protocol=features())
        assert refused(add("a"), add("b", stats=None), raised, at=at).action_index == 1

    def test_an_id_below_zero(self):
        at = ReadState(
            version=0, protocol=ROW_TRACKING, metadata=metadata(), row_id_high_water_mark=9
        )
        assert "baseRowId -1" in refused(add("a", baseRowId=-1), at=at).detail

    def test_the_mark_cannot_be_set(self):
        invalid = refused(mark(100), at=self.AT)
        assert (invalid.code, invalid.action_index) == (Code.INVALID_ACTION, 0)
        assert "cannot be set" in invalid.detail

    def test_more_rows_than_there_are_ids(self):
        at = ReadState(
            version=0,
            protocol=ROW_TRACKING,
            metadata=metadata(),
            row_id_high_water_mark=MAX_ROW_ID - 3,
        )
        prepared(add("a", stats=rows(3)), at=at)
        invalid = refused(add("a", stats=rows(4)), at=at)
        assert (invalid.code, invalid.action_index) == (Code.INVALID_ACTION, None)


class TestEnabling:
    def test_names_of_the_columns_that_keep_ids_are_chosen_once(self):
        table = ledger(metadata(properties=ENABLE), ROW_TRACKING)
        names = table.read(TABLE).metadata.configuration
        assert names[ROW_ID_COLUMN].startswith("_row-id-col-")
        assert names[COMMIT_VERSION_COLUMN].startswith("_row-commit-version-col-")
        table = landed(table, metadata(properties=ENABLE, name="n"), operation="X")
        assert table.read(TABLE).metadata.configuration == names

    def test_names_are_others_after_the_feature_was_dropped(self):
        """Files still have the columns, and the ids in them may be given out anew."""
        table = ledger(metadata(properties=ENABLE), ROW_TRACKING)
        names = table.read(TABLE).metadata.configuration
        table = landed(table, metadata(properties=SUSPEND), operation="SET TBLPROPERTIES")
        without = (metadata(), features("domainMetadata"))
        table = landed(table, *without, operation="DROP FEATURE")
        table = landed(table, ROW_TRACKING, operation="UPGRADE PROTOCOL")
        table = landed(table, metadata(properties=ENABLE), operation="SET TBLPROPERTIES")
        again = table.read(TABLE).metadata.configuration
        assert again.keys() == names.keys()
        assert not {again[ROW_ID_COLUMN], again[COMMIT_VERSION_COLUMN]} & {*names.values()}

    def test_names_of_the_table_win_over_those_of_another(self):
        own = {ROW_ID_COLUMN: "_i", COMMIT_VERSION_COLUMN: "_v"}
        table = ledger(metadata(properties={**ENABLE, **own}), ROW_TRACKING)
        assert table.read(TABLE).metadata.configuration == {**ENABLE, **own}
        copied = {ROW_ID_COLUMN: "_x", COMMIT_VERSION_COLUMN: "_y"}
        table = landed(table, metadata(properties={**ENABLE, **copied}), operation="CLONE")
        assert table.read(TABLE).metadata.configuration == {**ENABLE, **own}

    @pytest.mark.parametrize("names", [("v", "_v"), ("_i", "v"), ("_i", "_i")])
    def test_names_that_are_taken(self, names):
        own = dict(zip((ROW_ID_COLUMN, COMMIT_VERSION_COLUMN), names, strict=True))
        invalid = refused(
            metadata(properties={**ENABLE, **own}),
            at=state(table_protocol=ROW_TRACKING),
            operation="SET TBLPROPERTIES",
        )
        assert "names are taken" in invalid.detail

    def test_every_file_needs_ids_first(self):
        table = landed(ledger(table_protocol=features()), add("a"), add("b"))
        table = landed(table, ROW_TRACKING, operation="UPGRADE PROTOCOL", read_version=1)
        on = metadata(properties=ENABLE)
        _, outcome = table.propose(
            TABLE, proposal(on, read_version=2, operation="SET TBLPROPERTIES"), now_ms=NOW
        )
        assert isinstance(outcome, Invalid)
        assert outcome.path == "a"
        assert FileDemand.ROW_IDS in outcome.detail
        again = [add(path, dataChange=False) for path in ("a", "b")]
        both = landed(table, on, *again, operation="SET TBLPROPERTIES")
        assert given_out(both) == {"a": (0, 3), "b": (1, 3)}
        backfilled = landed(table, *again, operation="ROW TRACKING BACKFILL")
        assert given_out(landed(backfilled, on, operation="X")) == {"a": (0, 3), "b": (1, 3)}

    def test_a_file_that_came_without_ids_meanwhile(self):
        on = metadata(properties=ENABLE)
        table = ledger(table_protocol=ROW_TRACKING)
        table = foreign(table, commit_info(timestamp=1), add("theirs"))
        assert code(table, on, read_version=0, operation="X") is Code.PROTOCOL_CHANGED
        table = landed(ledger(table_protocol=ROW_TRACKING), add("theirs"))
        assert given_out(landed(table, on, read_version=0, operation="X")) == {"theirs": (0, 1)}


class TestTag:
    AT = (metadata(properties=ENABLE), ROW_TRACKING)

    def tags(self, *actions, table=None, **fields):
        after = landed(table or ledger(*self.AT), *actions, **fields)
        return after.tables[TABLE].commits[-1].actions[0].tags

    def test_where_nothing_is_copied_ids_are_kept(self):
        assert self.tags(add("a")) == {"delta.rowTracking.preserved": "true"}

    def test_writers_speak_for_themselves(self):
        mine = {"delta.rowTracking.preserved": "false"}
        assert self.tags(add("a"), tags=mine) == mine

    def test_where_files_are_replaced_it_is_not_known(self):
        table = landed(ledger(*self.AT), add("a"))
        assert self.tags(remove("a"), add("b"), table=table) is None
        assert self.tags(add("a"), table=ledger(table_protocol=ROW_TRACKING)) is None


class TestMark:
    @pytest.mark.parametrize("value", [-1, 0, 7, MAX_ROW_ID])
    def test_what_a_domain_says(self, value):
        assert high_water_mark(mark(value)) == value

    def test_none_and_a_removed_one(self):
        assert high_water_mark(None) == NO_ROW_IDS
        assert high_water_mark(domain(DOMAIN, "", removed=True)) == NO_ROW_IDS

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{}",
            "[]",
            '{"rowIdHighWaterMark":"7"}',
            '{"rowIdHighWaterMark":-2}',
            '{"rowIdHighWaterMark":7,"x":' + "[" * 5000 + "]" * 5000 + "}",
        ],
    )
    def test_what_is_none(self, text):
        with pytest.raises(InvalidHighWaterMark, match="rowIdHighWaterMark of -1 or more"):
            high_water_mark(domain(DOMAIN, text))
        with pytest.raises(InvalidHighWaterMark):
            high_water_mark(domain(DOMAIN, json.dumps({"rowIdHighWaterMark": 2**63})))

    def test_one_in_a_long_text_is_none(self):
        text = json.dumps({"rowIdHighWaterMark": 7})
        assert high_water_mark(domain(DOMAIN, text + " " * 1_000)) == 7
        with pytest.raises(InvalidHighWaterMark):
            high_water_mark(domain(DOMAIN, text + " " * 2**16))

    def test_what_the_first_winner_found(self):
        fresh = [
            add("f", baseRowId=5, defaultRowCommitVersion=2, stats=rows(2)),
            add("g", baseRowId=7, defaultRowCommitVersion=2, stats=rows(3)),
            add("empty", baseRowId=10, defaultRowCommitVersion=2, stats=rows(0)),
        ]
        copied = add("c", baseRowId=0, defaultRowCommitVersion=1)
        # A file of before whose writer left its commit version out.
        again = add("d", baseRowId=1, defaultRowCommitVersion=2, stats=rows(2))
        idle = winner(remove("x"), domain("d"), version=1)
        assert mark_before([], 9) == 9
        assert mark_before([idle], 9) == 9
        moved = winner(*fresh, copied, again, mark(9), version=2)
        for _ in range(2):
            # Its files are looked at once.
            assert mark_before([idle, moved], 9) == 4
        assert mark_before([winner(copied, mark(9), version=3)], 20) == 9

    @given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
    def test_it_agrees_with_the_ledger(self, counts, data):
        table = ledger(table_protocol=ROW_TRACKING)
        for number, count in enumerate(counts):
            table = landed(table, add(f"f{number}", stats=rows(count)))
        at = data.draw(st.integers(0, len(counts)))
        winners = table.tables[TABLE].winners(at)
        assert mark_before(winners, highest(table)) == (
            table.read(TABLE, at).read_state.row_id_high_water_mark
        )


def test_the_landed_lines_are_what_was_decided():
    table = landed(ledger(table_protocol=ROW_TRACKING), add("a", stats=rows(3), zzz=1))
    content = table.tables[TABLE].commits[1].content.splitlines()
    assert [next(iter(json.loads(text))) for text in content] == [
        "commitInfo",
        "domainMetadata",
        "add",
    ]
    written = json.loads(content[2])["add"]
    assert (written["baseRowId"], written["defaultRowCommitVersion"], written["zzz"]) == (0, 1, 1)
    assert isinstance(decoded({"add": written}), Add)


def test_a_transaction_lands_without_knowing_more():
    _, outcome = ledger(table_protocol=ROW_TRACKING).propose(
        TABLE, proposal(add("a"), read_version=None), now_ms=NOW
    )
    assert isinstance(outcome, Ratified)

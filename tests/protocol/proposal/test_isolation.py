"""Isolation levels, downgrades and blind appends."""

import pytest

from tests.builders.actions import add, cdc, domain, metadata, protocol, remove, txn, unknown
from tests.builders.ledgers import prepared, state, winner
from tests.builders.proposals import reads
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.isolation import (
    can_downgrade,
    is_blind_append,
    is_blind_winner,
    level_of,
    may_skip,
)
from tidegate_protocol.proposal.transaction import Invalid, IsolationLevel, Reads

SERIALIZABLE = IsolationLevel.SERIALIZABLE
WRITE_SERIALIZABLE = IsolationLevel.WRITE_SERIALIZABLE
SNAPSHOT = IsolationLevel.SNAPSHOT_ISOLATION


class TestLevel:
    @pytest.mark.parametrize(
        ("table", "requested", "level"),
        [
            (SERIALIZABLE, None, SERIALIZABLE),
            (WRITE_SERIALIZABLE, None, WRITE_SERIALIZABLE),
            (SERIALIZABLE, SERIALIZABLE, SERIALIZABLE),
            (WRITE_SERIALIZABLE, WRITE_SERIALIZABLE, WRITE_SERIALIZABLE),
            (WRITE_SERIALIZABLE, SERIALIZABLE, SERIALIZABLE),
        ],
    )
    def test_a_proposal_may_ask_for_a_stricter_level(self, table, requested, level):
        found = level_of(table=table, requested=requested, operation="WRITE", actions=[add()])
        assert found is level

    @pytest.mark.parametrize(
        ("table", "requested"),
        [
            (SERIALIZABLE, WRITE_SERIALIZABLE),
            (SERIALIZABLE, SNAPSHOT),
            (WRITE_SERIALIZABLE, SNAPSHOT),
        ],
    )
    def test_a_weaker_level_is_invalid(self, table, requested):
        found = level_of(table=table, requested=requested, operation="WRITE", actions=[add()])
        assert isinstance(found, Invalid)
        assert found.code is Code.INVALID_REQUEST
        assert requested.value in found.detail
        assert table.value in found.detail

    def test_a_weaker_level_is_invalid_even_where_it_would_be_taken_anyway(self):
        found = level_of(table=SERIALIZABLE, requested=SNAPSHOT, operation="WRITE", actions=[])
        assert isinstance(found, Invalid)

    def test_nothing_changed_is_judged_under_snapshot_isolation(self):
        found = level_of(table=SERIALIZABLE, requested=None, operation="WRITE", actions=[])
        assert found is SNAPSHOT

    def test_asking_for_more_never_gives_less(self):
        # By Serializable's own rule this DELETE could be downgraded, by the table's it may not.
        ask = {"table": WRITE_SERIALIZABLE, "operation": "DELETE", "actions": []}
        assert level_of(requested=None, **ask) is WRITE_SERIALIZABLE
        assert level_of(requested=SERIALIZABLE, **ask) is SERIALIZABLE

    def test_the_level_is_the_one_the_transaction_sets_itself(self):
        new = metadata(properties={"delta.isolationLevel": "WriteSerializable"})
        assert prepared(new, operation="SET TBLPROPERTIES").isolation_level is WRITE_SERIALIZABLE


class TestDowngrade:
    @pytest.mark.parametrize(
        ("actions", "allowed"),
        [
            ([], True),
            ([add(dataChange=False), remove(dataChange=False)], True),
            ([cdc()], True),
            ([add()], False),
            ([add(dataChange=False), remove("b")], False),
            ([cdc(dataChange=True)], False),
            ([add(dataChange=False), txn()], False),
            ([txn()], False),
            ([metadata()], False),
            ([protocol()], False),
            ([domain()], False),
            ([unknown()], False),
        ],
    )
    def test_only_file_actions_without_data_change(self, actions, allowed):
        assert can_downgrade(SERIALIZABLE, operation="WRITE", actions=actions) is allowed
        assert can_downgrade(WRITE_SERIALIZABLE, operation="OPTIMIZE", actions=actions) is allowed

    @pytest.mark.parametrize("operation", ["WRITE", "DELETE", "an operation of tomorrow"])
    def test_write_serializable_looks_at_the_operation(self, operation):
        assert can_downgrade(SERIALIZABLE, operation=operation, actions=[])
        assert not can_downgrade(WRITE_SERIALIZABLE, operation=operation, actions=[])


class TestBlindAppend:
    @pytest.mark.parametrize(
        ("actions", "blind"),
        [
            ([], True),
            ([add(), txn(), metadata(), domain()], True),
            ([add(), remove("b")], False),
            ([remove("b", dataChange=False)], False),
            ([add(), cdc()], False),
            ([add(), unknown()], False),
        ],
    )
    def test_every_file_action_is_an_add(self, actions, blind):
        assert is_blind_append(Reads(), actions) is blind

    @pytest.mark.parametrize(
        ("read", "blind"),
        [
            (reads(app_ids=["a"]), True),
            (reads("x = 1"), False),
            (reads(files=["a"]), False),
            (reads(whole_table=True), False),
        ],
    )
    def test_nothing_was_depended_on(self, read, blind):
        assert is_blind_append(read, [add()]) is blind


class TestBlindWinner:
    def test_a_claim_that_nothing_contradicts_is_believed(self):
        assert is_blind_winner(winner(add(), txn(), domain(), blind=True))

    def test_no_claim_is_no_blind_append(self):
        assert not is_blind_winner(winner(add(), blind=False))

    @pytest.mark.parametrize("sign", [remove("b"), metadata(), protocol(), unknown()])
    def test_a_claim_that_the_commit_contradicts_is_not_believed(self, sign):
        assert not is_blind_winner(winner(add(), sign, blind=True))


class TestSkip:
    def test_an_empty_transaction_is_skipped_when_its_writer_asks(self):
        assert may_skip(prepared(skip_if_empty=True))
        assert not may_skip(prepared(skip_if_empty=False))
        assert not may_skip(prepared(add(), skip_if_empty=True))

    def test_write_serializable_records_what_may_have_read(self):
        at = state(metadata(properties={"delta.isolationLevel": "WriteSerializable"}))
        assert not may_skip(prepared(at=at, operation="DELETE", skip_if_empty=True))
        assert may_skip(prepared(at=at, operation="OPTIMIZE", skip_if_empty=True))

"""Commits that are left out where there is nothing to commit."""

import pytest

import tidegate
from tests.client import answers
from tests.client.tables import append, data_file, new_table
from tidegate import TransactionState

SKIPPED = {
    "version": None,
    "read_version": 4,
    "timestamp": None,
    "isolation_level": None,
    "metrics": answers.METRICS | {"num_added_files": 0},
}


def test_it_asks_for_that(scripted_txn, loopback):
    loopback.answer(200, answers.receipt(scripted_txn.id, **SKIPPED))
    assert scripted_txn.commit_if_needed("DELETE") is None
    assert loopback.seen[0].json["skip_if_empty"] is True
    assert scripted_txn.state is TransactionState.ABORTED
    with pytest.raises(tidegate.TransactionClosed):
        scripted_txn.commit_if_needed("DELETE")


def test_under_an_id_that_was_brought_along_somebody_else_may_have_committed(
    scripted_table, loopback
):
    loopback.answer(200, answers.head())
    txn = scripted_table.transaction(transaction_id="nightly")
    loopback.answer(200, answers.receipt("nightly", **SKIPPED))
    assert txn.commit_if_needed("DELETE") is None
    assert txn.state is TransactionState.UNKNOWN


def test_whoever_did_not_ask_for_it_takes_no_such_answer(scripted_txn, loopback):
    loopback.answer(200, answers.receipt(scripted_txn.id, **SKIPPED))
    with pytest.raises(tidegate.CommitStateUnknown) as raised:
        scripted_txn.commit("DELETE")
    assert isinstance(raised.value.__cause__, tidegate.UnexpectedAnswer)


def test_nothing_is_recorded_of_nothing(table):
    append(table, data_file("a"))
    with table.transaction() as txn:
        txn.filter_files("month = 7")
        assert txn.commit_if_needed("DELETE") is None
    assert table.version == 1


def test_actions_are_committed(table):
    with table.transaction() as txn:
        txn.add([data_file("a")])
        receipt = txn.commit_if_needed("WRITE", metrics={"numFiles": "1"})
    assert receipt is not None
    assert (receipt.version, table.version) == (1, 1)
    assert table.history(limit=1)[0].operation_metrics == {"numFiles": "1"}


def test_what_was_read_is_recorded_where_it_matters(lake):
    table = new_table(lake, properties={"delta.isolationLevel": "WriteSerializable"})
    with table.transaction() as txn:
        txn.filter_files("month = 7")
        receipt = txn.commit_if_needed("DELETE")
    assert receipt is not None
    assert receipt.version == table.version == 1

"""Commits of any number of actions, which nobody holds together."""

import itertools
import json
import tracemalloc

import pytest

import tidegate
from tests.client import answers
from tests.client.tables import append, data_file, paths
from tests.client.transport.loopback import Drop
from tidegate import CommitStateUnknown, InvalidProposal, TransactionState
from tidegate.wire.proposal import spooled_proposal
from tidegate_protocol.log.lines import decode_lines
from tidegate_protocol.proposal.transaction import Proposal

DOMAIN = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}


def test_they_are_sent_as_lines_behind_what_was_recorded(scripted_txn, loopback):
    scripted_txn.set_transaction("app", 3)
    loopback.answer(201, answers.receipt(scripted_txn.id))
    files = (data_file(f"f{number}") for number in range(3))
    scripted_txn.commit_large(
        itertools.chain(files, [DOMAIN]), "CLONE", parameters={"source": "t"}, tags={"a": "b"}
    )
    (seen,) = loopback.seen
    assert seen.headers["content-type"] == "application/x-ndjson"
    assert seen.headers["content-length"] == str(len(seen.body))
    head, _, lines = seen.body.partition(b"\n")
    kinds = [type(action).__name__ for action in decode_lines(lines)]
    assert kinds == ["Txn", "Add", "Add", "Add", "DomainMetadata"]
    envelope = json.loads(head)
    assert "actions" not in envelope
    assert envelope["reads"]["whole_table"] is True
    assert envelope["isolation_level"] == "Serializable"
    assert (envelope["operation"], envelope["operation_parameters"]) == ("CLONE", {"source": "t"})
    assert scripted_txn.state is TransactionState.COMMITTED


def test_every_copy_is_whole(scripted_txn, loopback):
    loopback.then(Drop())
    loopback.answer(201, answers.receipt(scripted_txn.id))
    scripted_txn.commit_large((data_file(f"f{n}") for n in range(2_000)), "CLONE")
    first, second = loopback.seen
    assert first.body == second.body
    assert first.body.count(b"\n") == 2_001


def test_the_same_call_sends_the_same_proposal_again(scripted_txn, loopback):
    files = [data_file("a"), data_file("b")]
    loopback.out_of_service()
    with pytest.raises(CommitStateUnknown):
        scripted_txn.commit_large(files, "CLONE")
    with pytest.raises(tidegate.TransactionClosed, match="the same call again"):
        scripted_txn.commit_large(files[:1], "CLONE")
    loopback.answer(201, answers.receipt(scripted_txn.id))
    assert scripted_txn.commit_large(iter(files), "CLONE").version == 5
    first, second = loopback.seen
    assert first.body == second.body


def test_what_the_actions_raise_leaves_it_open(scripted_txn, loopback):
    def actions():
        yield data_file("a")
        raise OSError("the listing ended")

    with pytest.raises(OSError, match="the listing ended"):
        scripted_txn.commit_large(actions(), "CONVERT")
    assert scripted_txn.state is TransactionState.OPEN
    assert not scripted_txn.was_proposed
    with pytest.raises(InvalidProposal, match="no metaData"):
        scripted_txn.commit_large([scripted_txn.metadata], "CONVERT")
    with pytest.raises(InvalidProposal):
        scripted_txn.commit_large([{"add": {"path": 7}}], "CONVERT")
    assert loopback.seen == []


def test_nothing_is_taken_for_a_transaction_that_is_over(scripted_txn):
    with scripted_txn:
        pass
    coming = iter([data_file("a")])
    with pytest.raises(tidegate.TransactionClosed):
        scripted_txn.commit_large(coming, "CLONE")
    assert len(list(coming)) == 1


def test_they_land(table):
    append(table, data_file("a"), data_file("b", 6))
    with table.transaction() as txn:
        live = txn.filter_files()
        new = (data_file(f"n{number}", 7) for number in range(3))
        receipt = txn.commit_large(itertools.chain(txn.removals(live), new), "RESTORE")
    assert (receipt.metrics.num_added_files, receipt.metrics.num_removed_files) == (3, 2)
    assert paths(table.scan()) == [f"month=7/n{number}.parquet" for number in range(3)]


def test_it_is_moved_past_no_commit_that_changed_files(table):
    txn = table.transaction()
    append(table, data_file("theirs"))
    with pytest.raises(tidegate.ConcurrentAppendException), txn:
        txn.commit_large([data_file("mine")], "CLONE")
    assert paths(table.scan()) == ["month=5/theirs.parquet"]


@pytest.mark.slow
def test_no_more_than_a_few_of_them_are_held():
    proposal = Proposal(transaction_id="tx-1", operation="CLONE", actions=())
    files = (data_file(f"f{number}", stats="0" * 2_000) for number in range(15_000))
    tracemalloc.start()
    try:
        with spooled_proposal(proposal, files) as body:
            sent = sum(map(len, body))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent == body.size > 30_000_000
    assert peak < 20_000_000, "of which 8 MiB are the file before it is one"

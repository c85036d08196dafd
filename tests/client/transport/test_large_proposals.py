"""Proposals of thousands of actions: sent as NDJSON in pieces, as often as it takes."""

import json

from tests.client.tables import data_file, paths
from tests.client.transport.loopback import Drop, OfService
from tidegate.wire.connection import Connection
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.proposal import MANY_ACTIONS, commit_request, encode_proposal, patience
from tidegate.wire.transport import HttpTransport
from tidegate_protocol.proposal.transaction import Proposal


def proposal(count: int) -> Proposal:
    files = tuple(data_file(f"f{n:05}", 5) for n in range(count))
    return Proposal(transaction_id="tx-1", operation="WRITE", actions=files)


def test_few_are_one_document():
    body = encode_proposal(proposal(MANY_ACTIONS - 1))
    assert isinstance(body, bytes)
    assert len(json.loads(body)["actions"]) == MANY_ACTIONS - 1
    assert commit_request("t", body).content_type == "application/json"


def test_many_are_lines_and_say_the_same():
    few, many = proposal(1), proposal(MANY_ACTIONS)
    body = encode_proposal(many)
    assert isinstance(body, tuple)
    assert max(map(len, body)) < 1_000_000
    first, *lines = b"".join(body).splitlines()
    document = json.loads(encode_proposal(few))
    (action,) = document.pop("actions")
    assert json.loads(first) == document
    assert len(lines) == MANY_ACTIONS
    assert json.loads(lines[0]) == action
    assert commit_request("t", body).content_type == "application/x-ndjson"


def test_they_are_given_the_time_they_take():
    policy = RetryPolicy(deadline_s=60.0, attempt_s=35.0)
    assert patience(policy, actions=MANY_ACTIONS - 1) == policy
    longer = patience(policy, actions=1_000_000)
    assert (longer.deadline_s, longer.attempt_s) == (160.0, 135.0)


def test_every_copy_is_whole(loopback):
    loopback.then(Drop())
    loopback.then(OfService(200, b"{}"))
    body = encode_proposal(proposal(MANY_ACTIONS))
    transport = HttpTransport(loopback.url, token=None)
    connection = Connection(transport, policy=RetryPolicy(), sleep=lambda seconds: None)
    connection.propose(
        commit_request("t", body), lambda answer: answer, transaction_id="tx-1", in_doubt=False
    )
    transport.close()
    assert [seen.body for seen in loopback.seen] == [b"".join(body)] * 2
    assert {seen.headers["content-length"] for seen in loopback.seen} == {str(len(b"".join(body)))}


def test_they_land(table):
    with table.transaction() as txn:
        txn.add(proposal(MANY_ACTIONS).actions)
        receipt = txn.commit("WRITE")
    assert receipt.metrics.num_added_files == MANY_ACTIONS
    with table.transaction() as txn:
        txn.remove(txn.filter_files())
        txn.add([data_file("kept", 6)])
        txn.commit("WRITE")
    assert paths(table.scan()) == ["month=6/kept.parquet"]

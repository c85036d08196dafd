"""Which proposals no table takes, and which this one does not."""

import pytest

from tests.builders.actions import add, features, metadata, remove, txn
from tests.builders.ledgers import state
from tests.builders.lines import column, vector, wide
from tests.builders.proposals import proposal, reads
from tidegate_protocol.prepare.prepare import is_invalid_at_any_version, prepare
from tidegate_protocol.proposal.transaction import Invalid, IsolationLevel

VECTORS = {"delta.enableDeletionVectors": "true"}
STATES = [
    state(metadata(["v"])),
    state(metadata(["x", "v"], ["x"])),
    state(metadata([column("x", nullable=False), "v"], ["x"])),
    state(metadata(["v"], properties={"delta.isolationLevel": "WriteSerializable"})),
    state(metadata(["v"], properties=VECTORS), features(readers=["deletionVectors"])),
    state(metadata(["v"], properties={"delta.appendOnly": "true"})),
]
ANYWHERE = {
    "reads": ([add()], {"reads": reads("v = 1")}),
    "removes": ([remove()], {}),
    "a path that leads away": ([add("../a")], {}),
    "an empty file": ([add(size=0)], {}),
    "a file from before 1970": ([add(modificationTime=-1)], {}),
    "statistics that are none": ([add(stats="no")], {}),
    "a vector of no kind": ([add(deletionVector=vector(storageType="x"), stats=wide())], {}),
    "a file twice": ([add("a"), add("a")], {}),
    "a negative version": ([txn(version=-1)], {}),
    "two versions": ([txn(version=1), txn(version=2)], {}),
}
HERE = {
    "a partition": ([add("a", {"x": "1"})], {}),
    "no partition": ([add("a")], {}),
    "no value": ([add("a", {"x": None})], {}),
    "a weak level": ([add("a")], {"isolation_level": IsolationLevel.WRITE_SERIALIZABLE}),
    "a vector": ([add("a", deletionVector=vector(), stats=wide())], {}),
}


@pytest.mark.parametrize("what", ANYWHERE)
def test_what_is_wrong_by_itself_is_wrong_at_each(what):
    actions, fields = ANYWHERE[what]
    offer = proposal(*actions, read_version=None, **fields)
    assert is_invalid_at_any_version(offer)
    for at in STATES:
        assert isinstance(prepare(offer, at), Invalid), at


@pytest.mark.parametrize("what", HERE)
def test_what_is_wrong_for_a_table_is_not(what):
    actions, fields = HERE[what]
    offer = proposal(*actions, read_version=None, **fields)
    assert not is_invalid_at_any_version(offer)
    refused = [isinstance(prepare(offer, at), Invalid) for at in STATES]
    assert any(refused)
    assert not all(refused)


def test_what_is_right_is_not():
    assert not is_invalid_at_any_version(proposal(add(), txn(), read_version=None))

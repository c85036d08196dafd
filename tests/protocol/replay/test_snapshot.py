"""Folding commits into a table."""

import pytest

from tests.builders.actions import (
    add,
    commit_info,
    domain,
    metadata,
    protocol,
    remove,
    txn,
    unknown,
)
from tests.builders.lines import vector
from tidegate_protocol.replay.snapshot import Snapshot


def folded(*commits):
    snapshot = Snapshot()
    for version, actions in enumerate(commits):
        snapshot = snapshot.apply(version, actions)
    return snapshot


def test_before_the_first_commit_there_is_nothing():
    state = Snapshot().read_state
    assert (state.version, state.protocol, state.metadata) == (-1, None, None)


def test_the_newest_of_each_kind_counts():
    newest = metadata(name="n")
    snapshot = folded(
        [commit_info(), protocol(), metadata(), txn("a", 1), txn("b", 1), unknown()],
        [newest, txn("a", 2)],
        [protocol(1, 3)],
    )
    assert snapshot.version == 2
    assert snapshot.read_state.protocol == protocol(1, 3)
    assert snapshot.read_state.metadata == newest
    assert snapshot.txns == {"a": txn("a", 2), "b": txn("b", 1)}


def test_files_come_and_go():
    snapshot = folded([add("a"), add("b")], [remove("a"), add("c")], [remove("never there")])
    assert {path for path, _ in snapshot.files} == {"b", "c"}


def test_an_add_of_a_live_file_takes_its_place():
    again = add("a", stats='{"numRecords":2}')
    assert list(folded([add("a")], [again]).files.values()) == [again]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_new_deletion_vector_is_a_new_file_of_the_same_path(reverse):
    new = add("a", deletionVector=vector())
    commit = [remove("a"), new]
    snapshot = folded([add("a")], commit[::-1] if reverse else commit)
    assert list(snapshot.files.values()) == [new]
    assert snapshot.file_at("a") == new


def test_paths_are_known_decoded():
    snapshot = folded([add("x=a%20b/p")], [remove("x=a b/p")])
    assert snapshot.files == {}
    assert folded([add("x=a%20b/p")]).file_at("x=a b/p") == add("x=a%20b/p")
    assert folded([add("a")]).file_at("b") is None


def test_removed_domains_are_gone():
    snapshot = folded([domain("d", "1"), domain("e")], [domain("d", "1", removed=True)])
    assert snapshot.domains == {"e": domain("e")}
    assert folded([domain("d", "1")], [domain("d", "2")]).domains == {"d": domain("d", "2")}


@pytest.mark.parametrize("version", [-1, 0, 2])
def test_versions_have_no_gaps(version):
    with pytest.raises(ValueError, match="expected version 1"):
        folded([add()]).apply(version, [])


def test_a_snapshot_never_changes():
    before = folded([add("a"), txn("a", 1), domain("d")])
    before.apply(1, [remove("a"), txn("a", 2), domain("d", removed=True)])
    assert before == folded([add("a"), txn("a", 1), domain("d")])

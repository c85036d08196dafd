"""A compacted file stands for its commits: on top of whatever was before them, readers come to the
same table."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.by_x import METADATA, PROTOCOL, add, metadata, remove
from tidegate_protocol.log.actions import (
    Action,
    AddCDCFile,
    CommitInfo,
    DomainMetadata,
    Txn,
    UnknownAction,
)
from tidegate_protocol.log.file_names import CompactedFile, compacted_name, parse
from tidegate_protocol.log.lines import decode_lines
from tidegate_protocol.replay.compaction import CannotCompact, Compaction
from tidegate_protocol.replay.snapshot import Snapshot

LONG_AGO = 1_000
"""In ms since 1970: no retention reaches back to it."""


def compacted(*commits: list[Action]) -> list[dict[str, dict[str, object]]]:
    """The lines of the file of some commits."""
    merged = Compaction()
    for commit in commits:
        merged.take(commit)
    lines = [json.loads(line) for line in merged.content().splitlines()]
    assert len(lines) == merged.num_actions
    return lines


def test_the_newest_of_each_is_kept():
    newer = metadata(delta_appendOnly="false")
    found = compacted(
        [PROTOCOL, METADATA, add("a"), add("b", size=1), Txn(app_id="app", version=1)],
        [remove("a"), Txn(app_id="app", version=2), Txn(app_id="other", version=9)],
        [newer, add("b", size=2), DomainMetadata(domain="d", configuration="c", removed=False)],
    )
    assert [next(iter(line)) for line in found] == [
        "protocol",
        "metaData",
        "txn",
        "txn",
        "domainMetadata",
        "remove",
        "add",
    ]
    assert found[1]["metaData"]["configuration"] == {"delta.appendOnly": "false"}
    assert [(line["txn"]["appId"], line["txn"]["version"]) for line in found[2:4]] == [
        ("app", 2),
        ("other", 9),
    ]
    assert (found[5]["remove"]["path"], found[6]["add"]["size"]) == ("a", 2)


def test_a_file_with_another_vector_is_another_file():
    found = compacted([add("a")], [remove("a"), add("a", dv="v")], [add("c", dv="w")])
    assert [
        (kind, body["path"], "deletionVector" in body)
        for line in found
        for kind, body in line.items()
    ] == [("remove", "a", False), ("add", "a", True), ("add", "c", True)]


def test_what_tells_of_a_commit_is_left_out():
    change = AddCDCFile(path="c", partition_values={}, size=1, data_change=False)
    assert compacted([CommitInfo(operation="WRITE"), change]) == []


def test_files_are_told_as_what_there_is():
    found = compacted([add("a"), remove("b")])
    assert [body["dataChange"] for line in found for body in line.values()] == [False, False]


def test_fields_that_nobody_here_knows_stay():
    (found,) = compacted([add("a", somethingNew={"deep": [1, None]})])
    assert found["add"]["somethingNew"] == {"deep": [1, None]}


def test_a_remove_stays_however_old_it_is():
    """The checkpoint before may hold the file, which would be live again without it."""
    (found,) = compacted([remove("a", deletionTimestamp=LONG_AGO)])
    assert found["remove"]["deletionTimestamp"] == LONG_AGO


def test_a_domain_that_was_removed_stays_removed():
    gone = DomainMetadata(domain="d", configuration="", removed=True)
    (found,) = compacted([DomainMetadata(domain="d", configuration="c", removed=False)], [gone])
    assert found["domainMetadata"]["removed"] is True


def test_of_an_unknown_action_nothing_is_taken():
    merged = Compaction()
    with pytest.raises(CannotCompact, match="'novel'"):
        merged.take([add("a"), UnknownAction(kind="novel", raw=b'{"novel":{}}')])
    assert (merged.num_actions, merged.content()) == (0, b"")


@pytest.mark.parametrize("together", [True, False])
def test_a_path_that_is_spelled_in_two_ways_is_left_to_the_commits(together: bool):
    """A reader that compares the texts would miss the remove of the first one."""
    merged = Compaction()
    first: list[Action] = [remove("c%2Dc")]
    if not together:
        merged.take(first)
    with pytest.raises(CannotCompact, match="spells 'c%2Dc' as 'c-c'"):
        merged.take([*(first if together else []), add("c-c"), Txn(app_id="app", version=1)])
    assert merged.num_actions == (0 if together else 1)


def test_its_name():
    assert parse(compacted_name(1, 20)) == CompactedFile(start=1, end=20)
    assert compacted_name(0, 1) == "00000000000000000000.00000000000000000001.compacted.json"


@pytest.mark.parametrize(("start", "end"), [(1, 1), (2, 1), (-1, 1), (0, 2**63)])
def test_a_name_is_of_several_versions(start: int, end: int):
    with pytest.raises(ValueError, match="no range"):
        compacted_name(start, end)


paths = st.sampled_from(["a", "b", "c%20c", "x=1/d", "é"])
vectors = st.sampled_from([None, "v", "w"])
one: st.SearchStrategy[Action] = st.one_of(
    st.builds(
        lambda path, dv, size: add(path, dv=dv, size=size), paths, vectors, st.integers(0, 9)
    ),
    st.builds(lambda path, dv: remove(path, dv=dv), paths, vectors),
    st.builds(
        lambda app_id, version: Txn(app_id=app_id, version=version),
        st.sampled_from("pq"),
        st.integers(0, 9),
    ),
    st.builds(
        lambda domain, removed: DomainMetadata(domain=domain, configuration="", removed=removed),
        st.sampled_from("de"),
        st.booleans(),
    ),
    st.builds(lambda text: metadata(delta_appendOnly=text), st.sampled_from(["true", "false"])),
    st.just(CommitInfo(operation="WRITE")),
)
commits = st.lists(st.lists(one, max_size=5), min_size=4, max_size=12)


def told(snapshot: Snapshot) -> tuple[object, ...]:
    """A snapshot but for its version, and for whether its commits said that they change data."""
    assert snapshot.metadata is not None
    files = {key: (file.path, file.size) for key, file in snapshot.files.items()}
    return (
        snapshot.protocol,
        snapshot.metadata.configuration,
        files,
        {app_id: txn.version for app_id, txn in snapshot.txns.items()},
        {domain: each.configuration for domain, each in snapshot.domains.items()},
    )


@given(history=commits, cut=st.tuples(st.integers(0, 11), st.integers(0, 11)))
def test_it_comes_to_the_same_as_its_commits(history, cut):
    """A checkpoint, a compacted file, and the commits behind it."""
    history = [[PROTOCOL, METADATA], *history]
    first = min(cut) % len(history)
    last = max(first, max(cut) % len(history))
    expected = Snapshot()
    for version, commit in enumerate(history):
        expected = expected.apply(version, commit)

    found = Snapshot()
    for version, commit in enumerate(history[:first]):
        found = found.apply(version, commit)
    merged = Compaction()
    for commit in history[first : last + 1]:
        merged.take(commit)
    for commit in (tuple(decode_lines(merged.content())), *history[last + 1 :]):
        found = found.apply(found.version + 1, commit)
    assert told(found) == told(expected)

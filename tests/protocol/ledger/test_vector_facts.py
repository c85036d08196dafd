"""The reading of the log that the vectors' facts rest on: each fact can hold and can fail."""

import pytest

from tests.vector_facts import broken_facts, live_files

VECTOR = {"storageType": "u", "pathOrInlineDv": "dv", "offset": 1}
LOG = [
    [
        {"commitInfo": {"timestamp": 1}},
        {"metaData": {"configuration": {"old": "1"}}},
        {"domainMetadata": {"domain": "gone", "configuration": "x", "removed": False}},
    ],
    [
        {"commitInfo": {"timestamp": 5, "inCommitTimestamp": 5}},
        {"add": {"path": "w"}},
        {"txn": {"appId": "theirs", "version": 4}},
    ],
    [
        {"commitInfo": {"timestamp": 6, "inCommitTimestamp": 6, "tags": {"kept": "false"}}},
        {"metaData": {"configuration": {"since": "2", "at": "6", "before": "5"}}},
        {"add": {"path": "f", "baseRowId": 18}},
        {"remove": {"path": "w", "defaultRowCommitVersion": 3}},
        {"txn": {"appId": "mine", "version": 7}},
        {"domainMetadata": {"domain": "gone", "configuration": "x", "removed": True}},
        {"domainMetadata": {"domain": "d", "configuration": '{"k": 1}', "removed": False}},
    ],
]
TRUE_FACTS = [
    {"path": "f", "baseRowId": 18, "defaultRowCommitVersion": None},
    {"removed": "w", "defaultRowCommitVersion": 3},
    {"absent": "w"},
    {"domain": "d", "configuration": {"k": 1}},
    {"domain": "d", "configuration": '{"k": 1}'},
    {"domain": "gone", "removed": True},
    {"domain": "never", "removed": True},
    {"inCommitTimestamp": "> winner"},
    {"inCommitTimestamp": "> previous"},
    {"configuration": {"since": "2"}},
    {"configuration": {"at": "== inCommitTimestamp"}},
    {"configuration": {"before": "== inCommitTimestamp of version 1"}},
    {"configuration_absent": ["old"]},
    {"commitInfoTag": "kept", "value": "false"},
    {"txn": "mine", "version": 7, "count": 1},
    {"txn": "theirs", "version": 4},
    {"version": 2},
]
FALSE_FACTS = [
    {"path": "f", "baseRowId": 19},
    {"path": "w"},
    {"removed": "w", "defaultRowCommitVersion": None},
    {"removed": "f"},
    {"absent": "f"},
    {"domain": "d", "configuration": {"k": 2}},
    {"domain": "d", "configuration": ""},
    {"domain": "gone", "configuration": "x"},
    {"domain": "d", "removed": True},
    {"configuration": {"since": "3"}},
    {"configuration": {"since": "== inCommitTimestamp"}},
    {"configuration": {"old": "1"}},
    {"configuration_absent": ["since"]},
    {"commitInfoTag": "kept", "value": "true"},
    {"commitInfoTag": "other", "value": "true"},
    {"txn": "mine", "version": 8},
    {"txn": "mine", "version": 7, "count": 2},
    {"txn": "nobody", "version": 7},
    {"version": 1},
]


def holds(fact, log=LOG, last_winner=1):
    return broken_facts([fact], log, version=len(log) - 1, last_winner=last_winner) == []


@pytest.mark.parametrize("fact", TRUE_FACTS)
def test_what_is_so_holds(fact):
    assert holds(fact)


@pytest.mark.parametrize("fact", FALSE_FACTS)
def test_what_is_not_so_does_not(fact):
    assert not holds(fact)


@pytest.mark.parametrize("relation", ["> winner", "> previous"])
@pytest.mark.parametrize("info", [{"timestamp": 9}, {"timestamp": 9, "inCommitTimestamp": 5}])
def test_a_timestamp_must_be_in_the_commit_and_later(relation, info):
    assert not holds({"inCommitTimestamp": relation}, [*LOG[:2], [{"commitInfo": info}]])


def test_an_unknown_fact_is_no_fact():
    with pytest.raises(ValueError, match="no such fact"):
        holds({"weather": "fine"})


def test_live_files_are_known_by_path_and_deletion_vector():
    log = [
        [{"add": {"path": "b"}}, {"add": {"path": "a"}}],
        [{"remove": {"path": "a"}}, {"add": {"path": "a", "deletionVector": VECTOR}}],
        [{"remove": {"path": "b", "deletionVector": VECTOR}}],
    ]
    assert live_files(log) == ["a", "b"]
    gone = [{"remove": {"path": "a", "deletionVector": VECTOR}}, {"remove": {"path": "b"}}]
    assert live_files([*log, gone]) == []

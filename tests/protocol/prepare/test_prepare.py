"""Preparing a proposal: what is refused before any winner is looked at, and what is completed."""

import pytest

from tests.builders.actions import (
    add,
    commit_info,
    decoded,
    domain,
    features,
    metadata,
    protocol,
    remove,
    txn,
    unknown,
)
from tests.builders.ledgers import NO_TABLE, prepared, state
from tests.builders.proposals import proposal, reads
from tidegate_protocol.base.problems import Code
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import Invalid, IsolationLevel

DOMAINS = state(table_protocol=features("domainMetadata"))


def refused(*actions, at=None, **fields):
    read = at or state()
    fields.setdefault("read_version", read.version)
    outcome = prepare(proposal(*actions, **fields), read)
    assert isinstance(outcome, Invalid), outcome
    return outcome


class TestReadVersion:
    def test_the_state_must_be_that_of_the_read_version(self):
        with pytest.raises(ValueError, match="read version 3"):
            prepare(proposal(add(), read_version=3), state(version=2))

    def test_appends_need_none(self):
        mine = prepare(proposal(add(), txn(), read_version=None), state(version=7))
        assert mine.checked_through == mine.read.version == 7

    @pytest.mark.parametrize(
        "fields",
        [
            {"reads": reads("v = 1")},
            {"reads": reads(files=["a"])},
            {"reads": reads(whole_table=True)},
            {"reads": reads(app_ids=["a"])},
        ],
    )
    def test_who_read_must_say_which_version(self, fields):
        invalid = refused(add(), read_version=None, **fields)
        assert invalid.code is Code.INVALID_REQUEST
        expected = "read_version is needed: only a proposal that read nothing and holds only txn"
        assert invalid.detail.startswith(expected)

    @pytest.mark.parametrize(
        "action", [remove(), add(dataChange=False), metadata(), protocol(), domain(), unknown()]
    )
    def test_so_must_who_does_more_than_append(self, action):
        invalid = refused(add("b"), action, read_version=None, at=DOMAINS)
        assert invalid.code is Code.INVALID_REQUEST


class TestKinds:
    def test_the_service_writes_the_commit_info(self):
        invalid = refused(add(), commit_info(operation="WRITE"))
        assert (invalid.code, invalid.action_index) == (Code.INVALID_ACTION, 1)
        assert "the service writes it" in invalid.detail

    @pytest.mark.parametrize("kind", ["checkpointMetadata", "sidecar"])
    def test_a_checkpoints_actions_are_not_a_commits(self, kind):
        invalid = refused(decoded({kind: {"path": "p"}}))
        assert (invalid.code, invalid.action_index) == (Code.INVALID_ACTION, 0)
        assert kind in invalid.detail

    def test_other_unknown_kinds_survive(self):
        odd = unknown("sorcery", a=1)
        assert prepared(odd).actions == (odd,)

    def test_a_negative_application_version_is_invalid(self):
        assert refused(txn("app", -1)).code is Code.INVALID_ACTION


class TestApplicationTransactions:
    def test_equal_ones_are_committed_once(self):
        first = txn("app", 1)
        mine = prepared(first, add(), txn("app", 1), txn("other", 1))
        assert mine.actions == (first, add(), txn("other", 1))

    def test_two_versions_of_one_application_disagree(self):
        invalid = refused(txn("app", 1), txn("app", 2))
        assert (invalid.code, invalid.action_index) == (Code.SET_TRANSACTION_CONFLICT, 1)
        assert "1 and 2" in invalid.detail


class TestDomains:
    def test_different_ones_are_fine(self):
        mine = prepared(domain("d"), domain("e", removed=True), at=DOMAINS)
        assert mine.actions == (domain("d"), domain("e", removed=True))

    def test_one_twice_is_invalid(self):
        invalid = refused(domain("d"), domain("d", removed=True), at=DOMAINS)
        assert (invalid.code, invalid.action_index) == (Code.INVALID_ACTION, 1)

    def test_they_need_their_feature(self):
        invalid = refused(add(), domain("d"))
        assert (invalid.code, invalid.action_index) == (Code.UNSUPPORTED_FEATURE, 1)
        assert "domainMetadata" in invalid.detail

    def test_the_same_commit_may_bring_the_feature(self):
        prepared(features("appendOnly", "invariants", "domainMetadata"), domain("d"))

    @pytest.mark.parametrize("name", ["delta.clustering", "delta.sorcery"])
    def test_those_of_features_are_not_for_users(self, name):
        invalid = refused(domain(name), at=DOMAINS)
        assert invalid.code is Code.UNSUPPORTED_FEATURE
        assert name in invalid.detail


class TestReads:
    @pytest.mark.parametrize("predicate", ["x = ", "nowhere = 1", "x = (SELECT"])
    def test_a_predicate_that_cannot_be_read(self, predicate):
        at = state(metadata(["x", "v"], ["x"]))
        invalid = refused(add("a", {"x": "1"}), at=at, reads=reads(predicate))
        assert invalid.code is Code.INVALID_PREDICATE

    def test_predicates_are_about_the_version_that_was_read(self):
        at = state(metadata(["x", "v"], ["x"]))
        new = metadata(["y", "v"], ["y"])
        mine = prepared(new, at=at, reads=reads("x = 1"), operation="REPLACE TABLE")
        assert mine.read_filter.first_match([add("n", {"x": "1"})], use_statistics=False)
        assert not mine.read_filter.first_match([add("n", {"x": "2"})], use_statistics=False)

    def test_a_table_that_was_not_there_had_no_partitions(self):
        first = proposal(
            metadata(["x", "v"], ["x"]), read_version=-1, reads=reads("x = 1"), operation="X"
        )
        mine = prepare(first, NO_TABLE)
        assert mine.read_filter.first_match([add("n", {"x": "2"})], use_statistics=False)

    def test_a_schema_that_cannot_be_read_cannot_be_judged(self):
        broken = state(metadata(schemaString='{"type":"sorcery"}'))
        assert refused(add(), at=broken).code is Code.INVALID_SCHEMA
        replaced = refused(metadata(), at=broken, operation="REPLACE TABLE")
        assert replaced.code is Code.INVALID_SCHEMA


class TestResult:
    def test_a_plain_append(self):
        mine = prepared(add())
        assert mine.actions == (add(),)
        assert mine.protocol == protocol()
        assert mine.metadata == metadata()
        assert not mine.metadata_changed
        assert mine.isolation_level is IsolationLevel.SERIALIZABLE
        assert mine.is_blind_append
        assert mine.checked_through == 0

    def test_a_weaker_isolation_level_is_invalid(self):
        invalid = refused(add(), isolation_level=IsolationLevel.WRITE_SERIALIZABLE)
        assert invalid.code is Code.INVALID_REQUEST

    def test_empty_is_valid(self):
        assert prepared().actions == ()

"""The protocol rule."""

import pytest

from tests.builders.actions import add, features, metadata, protocol
from tests.builders.ledgers import prepared, state, winner
from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.protocol import protocol_rule
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction

NONE = features()
BARE = state(table_protocol=NONE)


def judged(mine, theirs):
    outcome = protocol_rule(mine, winner(theirs, operation="UPGRADE PROTOCOL"))
    if isinstance(outcome, Conflict):
        assert outcome.code is Code.PROTOCOL_CHANGED
    return outcome


def test_a_winner_without_a_protocol_changes_nothing():
    mine = prepared(add())
    assert protocol_rule(mine, winner(add("b"))) is mine


@pytest.mark.parametrize(
    "theirs",
    [
        features(),
        features("appendOnly"),
        features("inCommitTimestamp", "domainMetadata"),
        features(readers=["deletionVectors", "timestampNtz"]),
    ],
)
def test_features_that_ask_nothing_of_concurrent_writers_are_taken_over(theirs):
    outcome = judged(prepared(add(), at=BARE), theirs)
    assert isinstance(outcome, PreparedTransaction)
    assert outcome.protocol == theirs
    assert outcome.actions == (add(),)


@pytest.mark.parametrize("feature", ["invariants", "checkConstraints", "generatedColumns"])
def test_features_that_every_write_must_respect_fail_concurrent_ones(feature):
    outcome = judged(prepared(add(), at=BARE), features(feature))
    assert isinstance(outcome, Conflict)
    assert feature in outcome.detail


def test_a_legacy_upgrade_adds_what_its_version_implies():
    outcome = judged(prepared(add()), protocol(1, 3))
    assert isinstance(outcome, Conflict)
    assert "checkConstraints" in outcome.detail


def test_two_protocol_changes_conflict_even_if_they_agree():
    theirs = features("appendOnly")
    mine = prepared(theirs, at=BARE, operation="UPGRADE PROTOCOL")
    assert isinstance(judged(mine, theirs), Conflict)


def test_an_implied_upgrade_is_a_protocol_change():
    mine = prepared(
        metadata(properties={"delta.appendOnly": "true"}), at=BARE, operation="SET TBLPROPERTIES"
    )
    assert "appendOnly" in implied_features(mine.protocol)
    assert isinstance(judged(mine, features("inCommitTimestamp")), Conflict)


def test_a_winner_that_drops_a_feature_fails_everybody():
    at = state(table_protocol=features("appendOnly", "domainMetadata"))
    outcome = judged(prepared(add(), at=at), features("appendOnly"))
    assert isinstance(outcome, Conflict)
    assert "dropped features" in outcome.detail


def test_a_feature_that_came_and_went_between_two_winners_was_dropped():
    first = judged(prepared(add(), at=BARE), features("domainMetadata"))
    assert isinstance(first, PreparedTransaction)
    assert isinstance(judged(first, features()), Conflict)


@pytest.mark.parametrize(
    "theirs", [features("redirectWriterOnly-preview"), features("sorcery"), protocol(4, 8)]
)
def test_a_protocol_that_nobody_here_understands_cannot_be_judged(theirs):
    outcome = judged(prepared(add(), at=BARE), theirs)
    assert isinstance(outcome, Conflict)
    assert outcome.detail.startswith("cannot judge: version 1")

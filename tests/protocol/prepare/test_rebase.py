"""What lands: timestamps, commitInfo, bytes."""

import json
from dataclasses import replace
from importlib.metadata import version

import pytest

from tests.builders.actions import add, features, metadata, protocol, txn, unknown
from tests.builders.ledgers import NO_TABLE, NOW, prepared, state, winner
from tests.builders.proposals import proposal, reads
from tidegate_protocol import __version__
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.log.actions import Add, CommitInfo, Metadata
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.prepare import prepare

ENABLE = "delta.enableInCommitTimestamps"
VERSION = "delta.inCommitTimestampEnablementVersion"
TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
WITH_FEATURE = features("inCommitTimestamp")


def done(transaction, *, now_ms=NOW, previous_timestamp=NOW - 1, version=None):
    at = transaction.checked_through + 1 if version is None else version
    return complete(transaction, now_ms=now_ms, previous_timestamp=previous_timestamp, version=at)


def lines(ready):
    return [json.loads(text) for text in ready.content.splitlines()]


def info(ready):
    return lines(ready)[0]["commitInfo"]


def configuration(ready):
    return next(line["metaData"] for line in lines(ready) if "metaData" in line)["configuration"]


def test_the_version_is_a_constant_of_the_distribution():
    assert __version__ == version("tidegate")


class TestVersion:
    def test_it_lands_after_the_last_version_it_was_judged_against(self):
        assert done(prepared(add())).version == 1
        assert done(check_conflicts(prepared(add()), [winner(), winner(version=2)])).version == 3

    @pytest.mark.parametrize("at", [0, 2])
    def test_a_decision_is_never_used_for_another_version(self, at):
        with pytest.raises(ValueError, match="checked through version 0"):
            done(prepared(add()), version=at)


class TestTimestamp:
    @pytest.mark.parametrize(
        ("now", "previous", "expected"),
        [(10, 5, 10), (10, 9, 10), (10, 10, 11), (10, 50, 51), (0, -1, 0)],
    )
    def test_it_is_the_clock_or_one_past_the_version_before(self, now, previous, expected):
        ready = done(prepared(add()), now_ms=now, previous_timestamp=previous)
        assert ready.timestamp == expected
        assert info(ready)["timestamp"] == expected
        assert "inCommitTimestamp" not in info(ready)

    def test_where_the_table_asks_for_it_it_is_in_the_commit(self):
        at = state(metadata(properties={ENABLE: "true"}), WITH_FEATURE)
        ready = done(prepared(add(), at=at), now_ms=10, previous_timestamp=20)
        assert info(ready)["inCommitTimestamp"] == info(ready)["timestamp"] == 21
        assert ready.commit_info.in_commit_timestamp == 21

    def test_a_winner_may_have_asked_for_it(self):
        mine = prepared(add(), at=state(table_protocol=WITH_FEATURE))
        theirs = metadata(properties={ENABLE: "true", VERSION: "1", TIMESTAMP: "7"})
        ready = done(check_conflicts(mine, [winner(theirs)]))
        assert info(ready)["inCommitTimestamp"] == NOW
        assert ready.transaction.metadata == theirs


class TestEnablement:
    AT = state(table_protocol=WITH_FEATURE)

    def enabling(self, **properties):
        new = metadata(properties={ENABLE: "true", **properties})
        return prepared(new, at=self.AT, operation="SET TBLPROPERTIES")

    def test_it_is_recorded_since_when(self):
        ready = done(self.enabling(owner="o"), now_ms=10, previous_timestamp=20)
        assert configuration(ready) == {
            ENABLE: "true",
            "owner": "o",
            VERSION: "1",
            TIMESTAMP: "21",
        }
        assert ready.transaction.metadata.configuration[VERSION] == "1"

    def test_other_actions_stay_as_they_are(self):
        new = metadata(properties={ENABLE: "true"})
        ready = done(prepared(add("a"), new, add("b"), at=self.AT))
        assert [type(action) for action in ready.actions] == [CommitInfo, Metadata, Add, Add]
        assert ready.actions[2:] == (add("a"), add("b"))

    def test_each_version_it_moves_past_moves_the_record(self):
        ready = done(
            check_conflicts(self.enabling(), [winner(), winner(version=2)]), previous_timestamp=NOW
        )
        assert configuration(ready)[VERSION] == "3"
        assert configuration(ready)[TIMESTAMP] == str(info(ready)["inCommitTimestamp"])

    def test_a_writers_own_idea_of_it_is_overwritten(self):
        ready = done(self.enabling(**{VERSION: "99", TIMESTAMP: "99"}))
        assert configuration(ready)[VERSION] == "1"

    def test_version_0_needs_none(self):
        first = proposal(
            WITH_FEATURE,
            metadata(properties={ENABLE: "true"}),
            read_version=-1,
            operation="CREATE TABLE",
        )
        ready = done(prepare(first, NO_TABLE), previous_timestamp=-1)
        assert configuration(ready) == {ENABLE: "true"}
        assert info(ready)["inCommitTimestamp"] == NOW

    def test_what_was_recorded_stays(self):
        record = {VERSION: "3", TIMESTAMP: "33"}
        at = state(metadata(properties={ENABLE: "true", **record}), WITH_FEATURE)
        lost = prepared(metadata(properties={ENABLE: "true"}), at=at, operation="REPLACE TABLE")
        assert configuration(done(lost)) == {ENABLE: "true", **record}
        kept = prepared(
            metadata(properties={ENABLE: "true", **record}, name="n"), at=at, operation="X"
        )
        assert done(kept).transaction is kept

    def test_a_table_that_always_had_them_has_no_record(self):
        at = state(metadata(properties={ENABLE: "true"}), WITH_FEATURE)
        mine = prepared(metadata(properties={ENABLE: "true"}, name="n"), at=at, operation="X")
        assert configuration(done(mine)) == {ENABLE: "true"}

    def test_metadata_without_them_is_left_alone(self):
        mine = prepared(metadata(name="n"), at=self.AT, operation="X")
        assert configuration(done(mine)) == {}


class TestCommitInfo:
    def test_it_holds_everything(self):
        mine = prepared(
            add(),
            transaction_id="id-1",
            operation="MERGE",
            reads=reads("v = 1"),
            operation_parameters={"mode": "Append", "partitionBy": ["a"], "auto": True, "n": None},
            operation_metrics={"numOutputRows": "7", "numFiles": 3},
            user_metadata="by hand",
            tags={"team": "air"},
            engine_info="Spark/4",
        )
        ready = done(mine)
        assert info(ready) == {
            "timestamp": NOW,
            "operation": "MERGE",
            "operationParameters": {
                "mode": "Append",
                "partitionBy": '["a"]',
                "auto": "true",
                "n": "null",
            },
            "readVersion": 0,
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "operationMetrics": {"numOutputRows": "7", "numFiles": "3"},
            "userMetadata": "by hand",
            "tags": {"team": "air"},
            "engineInfo": "Spark/4",
            "txnId": "id-1",
            "tidegate": {
                "bodyDigest": mine.proposal.digest(),
                "tableId": mine.read.metadata.id,
            },
        }

    def test_what_there_is_none_of_is_absent(self):
        first = proposal(protocol(), metadata(), read_version=-1, operation="CREATE TABLE")
        found = info(done(prepare(first, NO_TABLE), previous_timestamp=-1))
        assert not {"readVersion", "userMetadata", "tags", "inCommitTimestamp"} & found.keys()
        assert found["tidegate"] == {"bodyDigest": first.digest()}
        assert found["engineInfo"] == f"Tidegate/{__version__}"
        assert found["operationParameters"] == found["operationMetrics"] == {}
        assert found["isBlindAppend"] is True

    def test_a_proposal_judged_at_the_head_read_the_head(self):
        mine = prepare(proposal(add(), read_version=None), state(version=7))
        assert info(done(mine))["readVersion"] == 7

    def test_tags_of_the_rules_stand_over_the_writers(self):
        mine = prepared(add(), tags={"team": "air", "kept": "true"})
        assert info(done(replace(mine, tags={"kept": "false"})))["tags"] == {
            "team": "air",
            "kept": "false",
        }


class TestBytes:
    def test_commit_info_is_first_then_protocol_and_metadata_then_the_rest_as_sent(self):
        first = proposal(
            add("a"), txn(), metadata(), unknown(), protocol(), read_version=-1, operation="X"
        )
        ready = done(prepare(first, NO_TABLE), previous_timestamp=-1)
        kinds = [next(iter(line)) for line in lines(ready)]
        assert kinds == ["commitInfo", "protocol", "metaData", "add", "txn", "sorcery"]
        assert ready.actions[0] is ready.commit_info

    def test_every_other_action_keeps_its_bytes(self):
        odd = unknown("sorcery", z=1, a=[1.50, "é"])
        strange = add("b", zzz={"later": True}, stats=None)
        ready = done(prepared(odd, strange))
        assert ready.content.split(b"\n")[1:] == [odd.raw, strange.raw, b""]

    def test_the_same_decision_gives_the_same_bytes(self):
        mine = prepared(add(), metadata(name="n"), operation="X")
        assert done(mine).content == done(mine).content


class TestCheckpointProtection:
    """Dropping a feature leaves versions behind that only checkpoints of then make readable."""

    NAME = "delta.requireCheckpointProtectionBeforeVersion"
    BEFORE = features("checkpointProtection", readers=["v2Checkpoint"])
    AFTER = features("checkpointProtection", readers=[])

    @pytest.mark.parametrize("rebased_over", [0, 2])
    def test_it_reaches_to_the_version_that_drops_it(self, rebased_over):
        at = state(table_protocol=self.BEFORE)
        mine = prepared(self.AFTER, at=at, operation="DROP FEATURE")
        winners = [winner(add(f"w{v}"), version=v) for v in range(1, rebased_over + 1)]
        done = complete(
            check_conflicts(mine, winners),
            now_ms=NOW,
            previous_timestamp=0,
            version=rebased_over + 1,
        )
        (written,) = [a for a in done.actions if hasattr(a, "configuration")]
        assert written.configuration == {self.NAME: str(rebased_over + 1)}

    def test_other_commits_leave_it_as_it_is(self):
        at = state(metadata(properties={self.NAME: "1"}), self.BEFORE)
        mine = prepared(metadata(properties={self.NAME: "1"}, name="n"), at=at, operation="X")
        done = complete(
            check_conflicts(mine, [winner(add("w"))]), now_ms=NOW, previous_timestamp=0, version=2
        )
        assert done.transaction.metadata.configuration == {self.NAME: "1"}

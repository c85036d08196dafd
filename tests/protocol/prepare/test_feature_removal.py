"""DROP FEATURE: what may go from a protocol, and when."""

import pytest

from tests.builders.actions import add, domain, features, managed, metadata, protocol, remove
from tests.builders.ledgers import NOW, TABLE, landed, ledger, prepared, state
from tests.builders.lines import column, vector, wide
from tests.builders.proposals import proposal
from tests.protocol.racing import code, refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.proposal.transaction import Invalid

DROP = "DROP FEATURE"
MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "v"}
CHANGES = {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
SUSPENDED = {"delta.rowTrackingSuspended": "true"}
TIMESTAMPS = {
    "delta.inCommitTimestampEnablementVersion": "1",
    "delta.inCommitTimestampEnablementTimestamp": "1",
}


def readers(*names):
    return features(readers=names)


def why_not(*actions, at, operation=DROP, **fields):
    invalid = refused(*actions, at=at, operation=operation, **fields)
    assert invalid.code is Code.PROTOCOL_DOWNGRADE
    return invalid.detail


class TestProtocols:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (readers("v2Checkpoint"), readers()),
            (readers("v2Checkpoint"), protocol(1, 7, writers=[])),
            (readers("columnMapping"), features()),
            (features("appendOnly", "invariants", "checkConstraints"), protocol(1, 2)),
            (protocol(1, 3), protocol(1, 2)),
            (
                features(readers=["v2Checkpoint"]),
                features("checkpointProtection", readers=[]),
            ),
            (features("appendOnly"), features("appendOnly")),
        ],
    )
    def test_one_feature_goes(self, old, new):
        mine = prepared(new, at=state(table_protocol=old), operation=DROP)
        assert implied_features(mine.protocol) == implied_features(new)

    def test_only_under_its_name(self):
        at = state(table_protocol=readers("v2Checkpoint"))
        assert "drops ['v2Checkpoint']" in why_not(readers(), at=at, operation="UPGRADE PROTOCOL")

    @pytest.mark.parametrize(
        ("old", "new", "why"),
        [
            (readers("v2Checkpoint", "columnMapping"), readers(), "expected one feature"),
            (readers("v2Checkpoint"), features("appendOnly"), "adds ['appendOnly']"),
            (features("appendOnly"), features(), "appendOnly cannot be dropped"),
            (features("clustering", "domainMetadata"), features("domainMetadata"), "clustering"),
            (features("domainMetadata"), features(), "domainMetadata cannot be dropped"),
            (
                features("icebergCompatV1", readers=["columnMapping"]),
                features("icebergCompatV1"),
                "needed by ['icebergCompatV1']",
            ),
        ],
    )
    def test_others_stay(self, old, new, why):
        assert why in why_not(new, at=state(table_protocol=old))

    def test_the_one_that_is_named(self):
        at = state(table_protocol=readers("v2Checkpoint"))
        named = {"featureName": "v2Checkpoint"}
        prepared(readers(), at=at, operation=DROP, operation_parameters=named)
        other = {"featureName": "columnMapping"}
        assert "'columnMapping'" in why_not(readers(), at=at, operation_parameters=other)

    def test_a_catalog_managed_table_stays_one(self):
        at = state(metadata(properties={"delta.enableInCommitTimestamps": "true"}), managed())
        lowered = features("appendOnly", "invariants", "inCommitTimestamp")
        assert refused(lowered, at=at, operation=DROP).code is Code.UNSUPPORTED_FEATURE
        needed = features("appendOnly", "invariants", readers=["catalogManaged"])
        assert refused(needed, at=at, operation=DROP).code is Code.INVALID_PROTOCOL


class TestLeftOver:
    @pytest.mark.parametrize(
        ("name", "for_readers", "table"),
        [
            ("checkConstraints", False, metadata(properties={"delta.constraints.c": "v > 0"})),
            (
                "columnMapping",
                True,
                metadata(
                    [column("v", **MAPPED)],
                    properties={
                        "delta.columnMapping.mode": "name",
                        "delta.columnMapping.maxColumnId": "1",
                    },
                ),
            ),
            ("columnMapping", True, metadata([column("v", **MAPPED)])),
            (
                "deletionVectors",
                True,
                metadata(properties={"delta.enableDeletionVectors": "true"}),
            ),
            (
                "inCommitTimestamp",
                False,
                metadata(properties={"delta.enableInCommitTimestamps": "true"}),
            ),
            ("inCommitTimestamp", False, metadata(properties=TIMESTAMPS)),
            ("rowTracking", False, metadata(properties={"delta.enableRowTracking": "true"})),
            ("rowTracking", False, metadata()),
            ("typeWidening", True, metadata(properties={"delta.enableTypeWidening": "true"})),
            ("typeWidening-preview", True, metadata([column("v", "long", **CHANGES)])),
            ("v2Checkpoint", True, metadata(properties={"delta.checkpointPolicy": "v2"})),
            (
                "materializePartitionColumns",
                False,
                metadata(properties={"delta.enableMaterializePartitionColumnsFeature": "true"}),
            ),
            (
                "checkpointProtection",
                False,
                metadata(properties={"delta.requireCheckpointProtectionBeforeVersion": "3"}),
            ),
        ],
    )
    def test_what_the_table_still_needs_stays(self, name, for_readers, table):
        old = features(*([] if for_readers else [name]), readers=[name] if for_readers else [])
        assert f"{name} cannot be dropped" in why_not(features(), at=state(table, old))

    @pytest.mark.parametrize(
        ("name", "clean"),
        [
            ("checkConstraints", metadata()),
            ("inCommitTimestamp", metadata()),
            ("materializePartitionColumns", metadata()),
            ("checkpointProtection", metadata()),
            ("rowTracking", metadata(properties=SUSPENDED)),
        ],
    )
    def test_what_it_needs_no_more_goes(self, name, clean):
        prepared(features(), at=state(clean, features(name)), operation=DROP)

    @pytest.mark.parametrize(
        "name",
        [
            "columnMapping",
            "deletionVectors",
            "typeWidening",
            "typeWidening-preview",
            "v2Checkpoint",
            "vacuumProtocolCheck",
        ],
    )
    def test_of_readers_too(self, name):
        prepared(features(), at=state(table_protocol=readers(name)), operation=DROP)

    def test_the_same_commit_may_clean_up(self):
        on = metadata(properties={"delta.checkpointPolicy": "v2"})
        at = state(on, readers("v2Checkpoint"))
        prepared(readers(), metadata(), at=at, operation=DROP)
        suspended = state(metadata(properties=SUSPENDED), features("rowTracking"))
        prepared(features(), metadata(), at=suspended, operation=DROP)


class TestFiles:
    DVS = metadata(properties={"delta.enableDeletionVectors": "true"})

    def table(self):
        table = ledger(self.DVS, readers("deletionVectors"))
        table = landed(table, add("a", deletionVector=vector(), stats=wide()), add("b"))
        return landed(table, metadata(), operation="UNSET TBLPROPERTIES")

    def drop(self, table, *actions):
        at = table.tables[TABLE].latest_version
        offer = proposal(readers(), *actions, read_version=at, operation=DROP)
        return table.propose(TABLE, offer, now_ms=NOW)[1]

    def test_deletion_vectors_are_gone_first(self):
        outcome = self.drop(self.table())
        assert isinstance(outcome, Invalid)
        assert (outcome.code, outcome.path) == (Code.INVALID_ACTION, "a")

    def test_or_with_it(self):
        marked = remove("a", dataChange=False, deletionVector=vector())
        outcome = self.drop(self.table(), marked, add("a", dataChange=False))
        assert isinstance(outcome, Ratified)

    def test_one_that_came_meanwhile(self):
        table = ledger(metadata(), readers("deletionVectors"))
        more = add("w", deletionVector=vector(), stats=wide())
        table = landed(table, more, operation="ROW TRACKING BACKFILL")
        answer = code(table, readers(), operation=DROP)
        assert answer is Code.PROTOCOL_CHANGED

    def test_row_tracking_takes_its_domain_along(self):
        protocol_ = features("rowTracking", "domainMetadata")
        table = landed(ledger(table_protocol=protocol_), add("a"))
        table = landed(table, metadata(properties=SUSPENDED), operation="SET TBLPROPERTIES")
        table = landed(table, add("a", dataChange=False), operation="ROW TRACKING UNBACKFILL")
        gone = domain("delta.rowTracking", "", removed=True)
        table = landed(table, features("domainMetadata"), gone, operation=DROP)
        assert table.read(TABLE).domains == {}
        assert refused(gone, at=state(table_protocol=protocol_)).code is Code.INVALID_ACTION


class TestHistory:
    NAME = "delta.requireCheckpointProtectionBeforeVersion"

    def test_it_is_protected_where_that_is_supported(self):
        old = features("checkpointProtection", readers=["v2Checkpoint"])
        new = features("checkpointProtection", readers=[])
        mine = prepared(new, at=state(table_protocol=old, version=6), operation=DROP)
        assert mine.metadata.configuration == {self.NAME: "7"}

    def test_writers_alone_need_no_history(self):
        old = features("checkpointProtection", "checkConstraints")
        mine = prepared(
            features("checkpointProtection"), at=state(table_protocol=old), operation=DROP
        )
        assert not mine.metadata_changed

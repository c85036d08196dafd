"""Preparing: protocol and metaData actions."""

from dataclasses import replace

import pytest

from tests.builders.actions import add, features, managed, metadata, protocol
from tests.builders.ledgers import NO_TABLE, prepared, state
from tests.builders.lines import column
from tests.builders.proposals import proposal
from tests.protocol.prepare.test_prepare import refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import UNITY_TABLE_ID
from tidegate_protocol.features.properties import MAX_PROPERTIES
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.prepare.table import MAX_METADATA_BYTES
from tidegate_protocol.proposal.transaction import PreparedTransaction

ENABLE_ICT = "delta.enableInCommitTimestamps"
BARE = state(table_protocol=features())
MANAGED = state(metadata(properties={ENABLE_ICT: "true"}), managed())


def changed(new, at=None, operation="SET TBLPROPERTIES", **fields):
    return prepared(new, at=at or state(), operation=operation, **fields)


def created(*actions):
    first = proposal(*actions, read_version=-1, operation="CREATE TABLE")
    outcome = prepare(first, NO_TABLE)
    assert isinstance(outcome, PreparedTransaction), outcome
    return outcome


class TestCounts:
    def test_one_metadata(self):
        invalid = refused(metadata(), add(), metadata(name="n"))
        assert (invalid.code, invalid.action_index) == (Code.MULTIPLE_METADATA, 2)

    def test_one_protocol(self):
        invalid = refused(protocol(), protocol())
        assert (invalid.code, invalid.action_index) == (Code.MULTIPLE_PROTOCOL, 1)

    def test_a_first_commit_has_metadata(self):
        invalid = refused(protocol(), add(), at=NO_TABLE)
        assert invalid.code is Code.MISSING_METADATA


class TestFirstCommit:
    def test_its_protocol_is_the_lowest_that_serves(self):
        mine = created(metadata())
        assert mine.protocol == Protocol(min_reader_version=1, min_writer_version=2)
        assert mine.actions == (mine.protocol, metadata())
        assert mine.metadata_changed

    def test_its_protocol_has_what_its_properties_need(self):
        mine = created(metadata(properties={"delta.enableDeletionVectors": "true"}))
        assert "deletionVectors" in implied_features(mine.protocol)

    def test_a_protocol_of_its_own_is_kept(self):
        mine = created(metadata(), features("appendOnly"))
        assert mine.actions == (features("appendOnly"), metadata())

    def test_files_are_checked_against_its_own_metadata(self):
        created(metadata(["x", "v"], ["x"]), add("a", {"x": "1"}))
        invalid = refused(metadata(["x", "v"], ["x"]), add("a"), at=NO_TABLE)
        assert invalid.code is Code.PARTITION_MISMATCH


class TestProtocolAction:
    @pytest.mark.parametrize(
        ("new", "code"),
        [
            (protocol(0, 2), Code.INVALID_PROTOCOL),
            (protocol(1, 0), Code.INVALID_PROTOCOL),
            (protocol(3, 7), Code.INVALID_PROTOCOL),
            (protocol(1, 2, writers=["appendOnly"]), Code.INVALID_PROTOCOL),
            (protocol(1, 1), Code.PROTOCOL_DOWNGRADE),
            (features("appendOnly"), Code.PROTOCOL_DOWNGRADE),
            (features("appendOnly", "invariants", "sorcery"), Code.UNSUPPORTED_FEATURE),
            (protocol(4, 8), Code.UNSUPPORTED_FEATURE),
            (managed(), Code.UNSUPPORTED_FEATURE),
        ],
    )
    def test_what_it_may_not_be(self, new, code):
        assert refused(new, operation="UPGRADE PROTOCOL").code is code

    def test_an_upgrade(self):
        mine = changed(protocol(1, 3), operation="UPGRADE PROTOCOL")
        assert mine.protocol == protocol(1, 3)
        assert not mine.metadata_changed

    def test_one_that_changes_nothing_is_committed_all_the_same(self):
        same = protocol()
        mine = prepared(same, metadata(name="n"), at=state(table_protocol=same))
        assert mine.actions == (same, metadata(name="n"))

    def test_a_first_one_is_checked_too(self):
        assert refused(metadata(), protocol(0, 1), at=NO_TABLE).code is Code.INVALID_PROTOCOL

    def test_catalog_management_is_chosen_at_creation_and_for_ever(self):
        added = refused(managed())
        taken = refused(features("appendOnly", "invariants", "inCommitTimestamp"), at=MANAGED)
        for invalid in (added, taken):
            assert invalid.code is Code.UNSUPPORTED_FEATURE
            assert "only when a table is created" in invalid.detail

    def test_a_table_of_a_protocol_that_is_not_supported_takes_nothing(self):
        at = state(table_protocol=features("redirectWriterOnly-preview"))
        invalid = refused(add(), at=at)
        assert invalid.code is Code.UNSUPPORTED_FEATURE
        assert "redirectWriterOnly" in invalid.detail


class TestImpliedUpgrade:
    def test_metadata_that_needs_a_feature_brings_the_protocol(self):
        new = metadata(properties={ENABLE_ICT: "true"})
        mine = changed(new, at=BARE)
        assert implied_features(mine.protocol) == {"inCommitTimestamp"}
        assert mine.actions == (mine.protocol, new)

    def test_a_legacy_protocol_stays_one_where_it_can(self):
        at = state(table_protocol=protocol(1, 1))
        mine = changed(metadata(properties={"delta.constraints.c": "v > 0"}), at=at)
        assert mine.protocol.min_writer_version == 3 or implied_features(mine.protocol) == {
            "checkConstraints"
        }

    def test_what_the_table_had_stays(self):
        mine = changed(metadata(properties={"delta.enableDeletionVectors": "true"}))
        assert implied_features(mine.protocol) == {"appendOnly", "invariants", "deletionVectors"}

    def test_metadata_that_needs_nothing_brings_none(self):
        new = metadata(properties={"delta.appendOnly": "true"})
        mine = changed(new)
        assert mine.actions == (new,)
        assert mine.protocol == protocol()

    def test_a_protocol_action_beside_it_must_have_the_feature(self):
        new = metadata(properties={ENABLE_ICT: "true"})
        invalid = refused(features("appendOnly", "invariants"), new)
        assert invalid.code is Code.INVALID_PROTOCOL
        assert "inCommitTimestamp" in invalid.detail
        prepared(features("appendOnly", "invariants", "inCommitTimestamp"), new)

    @pytest.mark.parametrize(
        ("new", "feature"),
        [
            (
                metadata(properties={"delta.redirectWriterOnly-preview": "{}"}),
                "redirectWriterOnly-preview",
            ),
            (
                metadata(properties={"delta.coordinatedCommits.commitCoordinator-preview": "c"}),
                "coordinatedCommits-preview",
            ),
        ],
    )
    @pytest.mark.parametrize("version", [2, 6])
    def test_a_feature_that_is_not_supported_is_refused(self, new, feature, version):
        at = state(table_protocol=protocol(1, version))
        invalid = refused(new, at=at)
        assert invalid.code is Code.UNSUPPORTED_FEATURE
        assert feature in invalid.detail

    def test_one_that_a_legacy_table_uses_already_is_refused(self):
        at = state(metadata(properties={"delta.redirectWriterOnly-preview": "{}"}), protocol(1, 4))
        assert refused(add(), at=at).code is Code.UNSUPPORTED_FEATURE
        prepared(add(), at=state(table_protocol=protocol(1, 4)))

    @pytest.mark.parametrize(
        ("new", "feature"),
        [
            (metadata(properties={"delta.enableChangeDataFeed": "true"}), "changeDataFeed"),
            (metadata(properties={"delta.checkpointPolicy": "v2"}), "v2Checkpoint"),
            (metadata(properties={"delta.enableTypeWidening": "true"}), "typeWidening"),
            (
                metadata([column("v", **{"delta.generationExpression": "1"})]),
                "generatedColumns",
            ),
            (metadata([column("v", CURRENT_DEFAULT="1")]), "allowColumnDefaults"),
            (metadata([column("v"), column("w", "variant")]), "variantType"),
        ],
    )
    def test_features_that_metadata_uses_come_with_it(self, new, feature):
        assert feature in implied_features(changed(new).protocol)


class TestCatalogManaged:
    def test_in_commit_timestamps_are_enabled(self):
        mine = created(managed(), metadata(properties={"owner": "o"}))
        assert mine.metadata.configuration == {"owner": "o", ENABLE_ICT: "true"}
        assert mine.actions == (managed(), mine.metadata)

    def test_they_stay_enabled(self):
        mine = changed(metadata(name="n"), at=MANAGED)
        assert mine.metadata.configuration == {ENABLE_ICT: "true"}
        assert mine.metadata.name == "n"

    def test_metadata_that_has_them_keeps_its_bytes(self):
        new = metadata(properties={ENABLE_ICT: "true"}, zzz=1)
        assert changed(new, at=MANAGED).actions == (new,)

    def test_they_cannot_be_disabled(self):
        invalid = refused(metadata(properties={ENABLE_ICT: "false"}), at=MANAGED)
        assert invalid.code is Code.INVALID_ACTION
        assert ENABLE_ICT in invalid.detail


class TestMetadataAction:
    @pytest.mark.parametrize(
        ("new", "code", "why"),
        [
            (metadata(format={"provider": "orc"}), Code.INVALID_ACTION, "'orc'"),
            (metadata(schemaString="{"), Code.INVALID_SCHEMA, ""),
            (metadata(["v", "V"]), Code.INVALID_SCHEMA, "V"),
            (metadata(["a b"]), Code.INVALID_SCHEMA, "a b"),
            (metadata(description="x" * MAX_METADATA_BYTES), Code.INVALID_ACTION, "no more than"),
            (
                metadata(properties={str(n): "" for n in range(MAX_PROPERTIES + 1)}),
                Code.INVALID_ACTION,
                "2001 table properties",
            ),
            (
                metadata(format={"options": {str(n): "" for n in range(MAX_PROPERTIES + 1)}}),
                Code.INVALID_ACTION,
                "2001 entries",
            ),
            (metadata([]), Code.INVALID_SCHEMA, ""),
            (metadata(properties={"delta.appendOnly": "maybe"}), Code.INVALID_ACTION, "maybe"),
            (metadata(properties={"delta.sorcery": "1"}), Code.INVALID_ACTION, "delta.sorcery"),
            (metadata(properties={"DELTA.appendonly": "true"}), Code.INVALID_ACTION, "spelled"),
            (metadata(properties={"delta.minWriterVersion": "3"}), Code.INVALID_ACTION, "protocol"),
            (
                metadata(properties={"delta.feature.deletionVectors": "supported"}),
                Code.INVALID_ACTION,
                "protocol",
            ),
        ],
    )
    def test_what_it_may_not_be(self, new, code, why):
        invalid = refused(new, operation="SET TBLPROPERTIES")
        assert invalid.code is code
        assert why in invalid.detail

    @pytest.mark.parametrize(
        ("columns", "partition_by"),
        [
            (["x", "v"], ["nowhere"]),
            (["x", "v"], ["x", "v"]),
            (["x", "v"], ["x", "x"]),
            (["x", "v"], ["X"]),
            (
                [column("x", {"type": "array", "elementType": "long", "containsNull": True}), "v"],
                ["x"],
            ),
        ],
    )
    def test_what_its_partition_columns_may_not_be(self, columns, partition_by):
        invalid = refused(metadata(columns, partition_by), operation="REPLACE TABLE")
        assert invalid.code is Code.INVALID_SCHEMA

    def test_properties_of_names_that_the_table_has_already_are_not_asked_for_again(self):
        old = {"delta.sorcery": "1"}
        mine = changed(metadata(properties=old, name="n"), at=state(metadata(properties=old)))
        assert isinstance(mine.actions[0], Metadata)


class TestChange:
    BY_X = metadata(["x", "v"], ["x"])

    def test_partition_columns_change_when_the_table_is_replaced(self):
        at = state(metadata(["x", "v"]))
        assert changed(self.BY_X, at=at, operation="REPLACE TABLE").metadata == self.BY_X
        overwrite = {"mode": "Overwrite", "canOverwriteSchema": "true"}
        changed(self.BY_X, at=at, operation="WRITE", operation_parameters=overwrite)

    @pytest.mark.parametrize("operation", ["SET TBLPROPERTIES", "WRITE", "nobody knows it"])
    def test_and_at_no_other_time(self, operation):
        invalid = refused(self.BY_X, at=state(metadata(["x", "v"])), operation=operation)
        assert invalid.code is Code.INVALID_ACTION
        assert "partition columns from [] to ['x']" in invalid.detail

    def test_their_order_is_part_of_them(self):
        at = state(metadata(["x", "y", "v"], ["x", "y"]))
        invalid = refused(metadata(["x", "y", "v"], ["y", "x"]), at=at)
        assert "partition columns" in invalid.detail

    @pytest.mark.parametrize("found", [{UNITY_TABLE_ID: "another"}, {}])
    @pytest.mark.parametrize("operation", ["SET TBLPROPERTIES", "REPLACE TABLE"])
    def test_the_id_that_a_catalog_knows_the_table_by_is_given_once(self, operation, found):
        properties = MANAGED.metadata.configuration
        given = metadata(properties={**properties, UNITY_TABLE_ID: "id"})
        assert changed(given, at=MANAGED).metadata == given
        at = replace(MANAGED, metadata=given)
        named = metadata(properties=given.configuration, name="n")
        assert changed(named, at=at).metadata == named
        other = metadata(properties={**properties, **found})
        invalid = refused(other, at=at, operation=operation)
        assert invalid.code is Code.INVALID_ACTION
        assert f"{UNITY_TABLE_ID} cannot be changed" in invalid.detail
        # To a plain table it is a property like any other.
        plain = state(metadata(properties={UNITY_TABLE_ID: "id"}))
        assert changed(metadata(properties=found), at=plain).metadata.configuration == found

    def test_the_id_changes_when_the_table_is_replaced(self):
        assert changed(metadata(id="new"), operation="REPLACE TABLE").metadata.id == "new"

    @pytest.mark.parametrize(
        ("operation", "at"),
        [("SET TBLPROPERTIES", state()), ("Manual Update", state()), ("REPLACE TABLE", MANAGED)],
    )
    def test_and_at_no_other_time_and_never_behind_a_catalogs_back(self, operation, at):
        new = metadata(id="new", properties=at.metadata.configuration)
        invalid = refused(new, at=at, operation=operation)
        assert invalid.code is Code.INVALID_ACTION
        assert "'new'" in invalid.detail

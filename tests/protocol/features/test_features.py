"""Table features: what a protocol supports, what a table uses, and how protocols change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import table_features
from tidegate_protocol.features.known import FEATURES, LEGACY, NOT_CARRIED
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.log.codec import decode
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.schema.table_schema import (
    LONG,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    Field,
    MapType,
    StructType,
)


def legacy(reader: int, writer: int) -> Protocol:
    return Protocol(min_reader_version=reader, min_writer_version=writer)


def listed(writer: set[str], reader: set[str] | None = None, *, version: int = 1) -> Protocol:
    return Protocol(
        min_reader_version=version if reader is None else 3,
        min_writer_version=7,
        reader_features=None if reader is None else frozenset(reader),
        writer_features=frozenset(writer),
    )


def of(data_type: DataType = LONG, **metadata: object) -> StructType:
    return StructType(fields=(Field(name="a", type=data_type, metadata=metadata),))


def properties(**configuration: str) -> TableProperties:
    return TableProperties.parse(configuration)


LEGACY_2 = {"appendOnly", "invariants"}
LEGACY_4 = LEGACY_2 | {"checkConstraints", "changeDataFeed", "generatedColumns"}

protocols = st.builds(legacy, st.integers(1, 2), st.integers(1, 6)) | st.sets(
    st.sampled_from(sorted(FEATURES))
).map(lambda names: listed(names, {name for name in names if FEATURES[name].for_readers}))


class TestImplied:
    @pytest.mark.parametrize(
        ("protocol", "implied"),
        [
            (legacy(1, 1), set()),
            (legacy(1, 2), LEGACY_2),
            (legacy(1, 3), LEGACY_2 | {"checkConstraints"}),
            (legacy(1, 4), LEGACY_4),
            (legacy(1, 5), LEGACY_4),
            (legacy(2, 4), LEGACY_4),
            (legacy(2, 5), LEGACY_4 | {"columnMapping"}),
            (legacy(2, 6), LEGACY_4 | {"columnMapping", "identityColumns"}),
            (listed({"appendOnly"}), {"appendOnly"}),
            (listed({"columnMapping"}, version=2), {"columnMapping"}),
            (listed(set(), set()), set()),
            (listed({"deletionVectors", "new"}, {"deletionVectors"}), {"deletionVectors", "new"}),
        ],
    )
    def test_what_a_protocol_supports(self, protocol, implied):
        assert table_features.implied_features(protocol) == implied
        for name in FEATURES:
            assert table_features.supports(protocol, name) == (name in implied)


class TestSupported:
    @pytest.mark.parametrize(
        "protocol",
        [
            *(legacy(reader, writer) for reader in (1, 2) for writer in range(1, 7)),
            listed(set()),
            listed(set(), set()),
            listed({"columnMapping"}, version=2),
            listed(set(LEGACY), {"columnMapping"}),
            listed(
                set(table_features.SUPPORTED_WRITER_FEATURES),
                set(table_features.SUPPORTED_READER_FEATURES),
            ),
        ],
    )
    def test_carried_protocols(self, protocol):
        assert table_features.check_supported(protocol) is None

    @pytest.mark.parametrize(
        ("protocol", "code", "detail"),
        [
            (legacy(0, 2), Code.INVALID_PROTOCOL, "expected 1 or more"),
            (legacy(1, 0), Code.INVALID_PROTOCOL, "expected 1 or more"),
            (legacy(-1, 2), Code.INVALID_PROTOCOL, "expected 1 or more"),
            (legacy(4, 7), Code.UNSUPPORTED_FEATURE, "reader version 4"),
            (legacy(1, 8), Code.UNSUPPORTED_FEATURE, "writer version 8"),
            (legacy(3, 6), Code.INVALID_PROTOCOL, "needs writer version 7, not 6"),
            (legacy(1, 7), Code.INVALID_PROTOCOL, "writer version 7 needs writerFeatures"),
            (
                Protocol(min_reader_version=3, min_writer_version=7, writer_features=frozenset()),
                Code.INVALID_PROTOCOL,
                "reader version 3 needs readerFeatures, and there are none",
            ),
            (
                Protocol(min_reader_version=1, min_writer_version=2, writer_features=frozenset()),
                Code.INVALID_PROTOCOL,
                "writerFeatures go with writer version 7 alone, not with 2",
            ),
            (
                Protocol(
                    min_reader_version=2,
                    min_writer_version=7,
                    reader_features=frozenset(),
                    writer_features=frozenset(),
                ),
                Code.INVALID_PROTOCOL,
                "readerFeatures go with reader version 3 alone, not with 2",
            ),
            (
                listed({"coordinatedCommits-preview", "inCommitTimestamp"}),
                Code.UNSUPPORTED_FEATURE,
                "'coordinatedCommits-preview' (another commit coordinator",
            ),
            (
                listed({"redirectWriterOnly-preview"}),
                Code.UNSUPPORTED_FEATURE,
                "another table",
            ),
            (listed({"new"}, {"new"}), Code.UNSUPPORTED_FEATURE, "'new'"),
            (listed(set(), {"new"}), Code.UNSUPPORTED_FEATURE, "'new'"),
            (listed({"DeletionVectors"}, set()), Code.UNSUPPORTED_FEATURE, "'DeletionVectors'"),
            (
                listed(set(), {"deletionVectors"}),
                Code.INVALID_PROTOCOL,
                "deletionVectors is in readerFeatures but not in writerFeatures",
            ),
            (
                listed({"deletionVectors"}, set()),
                Code.INVALID_PROTOCOL,
                "deletionVectors is in writerFeatures but not in readerFeatures",
            ),
            (listed({"deletionVectors"}), Code.INVALID_PROTOCOL, "not in readerFeatures"),
            (listed({"columnMapping"}), Code.INVALID_PROTOCOL, "not in readerFeatures"),
            (listed({"columnMapping"}, set()), Code.INVALID_PROTOCOL, "not in readerFeatures"),
            (
                listed({"appendOnly"}, {"appendOnly"}),
                Code.INVALID_PROTOCOL,
                "appendOnly is for writers only",
            ),
            (
                listed({"catalogManaged"}, {"catalogManaged"}),
                Code.INVALID_PROTOCOL,
                "catalogManaged needs the feature inCommitTimestamp",
            ),
        ],
    )
    def test_others_are_refused_with_their_reason(self, protocol, code, detail):
        invalid = table_features.check_supported(protocol)
        assert invalid is not None
        assert invalid.code is code
        assert detail in invalid.detail

    def test_a_long_one_is_refused(self):
        raw = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2%b}}'
        assert table_features.check_supported(decode(raw % b"")) is None
        invalid = table_features.check_supported(
            decode(raw % (b" " * table_features.MAX_PROTOCOL_BYTES))
        )
        assert isinstance(invalid, Invalid)
        assert invalid.code is Code.INVALID_PROTOCOL
        assert "expected at most 16384" in invalid.detail

    def test_every_known_feature_is_carried_or_refused_with_a_reason(self):
        assert FEATURES.keys() - table_features.SUPPORTED_WRITER_FEATURES == NOT_CARRIED.keys()
        assert table_features.SUPPORTED_READER_FEATURES < table_features.SUPPORTED_WRITER_FEATURES


class TestTransition:
    @pytest.mark.parametrize(
        ("old", "new", "code"),
        [
            (legacy(1, 2), legacy(1, 2), None),
            (legacy(1, 2), legacy(1, 4), None),
            (legacy(2, 3), legacy(1, 3), None),
            (legacy(1, 2), listed(LEGACY_2 | {"domainMetadata"}), None),
            (listed(LEGACY_2), legacy(1, 2), None),
            (listed(set(), set()), legacy(1, 1), None),
            (legacy(1, 4), legacy(1, 2), Code.PROTOCOL_DOWNGRADE),
            (legacy(1, 2), listed({"appendOnly"}), Code.PROTOCOL_DOWNGRADE),
            (listed({"domainMetadata"}), listed(set()), Code.PROTOCOL_DOWNGRADE),
            (listed({"new"}), listed(set()), Code.PROTOCOL_DOWNGRADE),
            (legacy(1, 2), legacy(0, 2), Code.INVALID_PROTOCOL),
            (legacy(1, 2), listed(LEGACY_2 | {"new"}), Code.UNSUPPORTED_FEATURE),
        ],
    )
    def test_features_come_and_do_not_go(self, old, new, code):
        invalid = table_features.check_transition(old, new)
        assert (None if invalid is None else invalid.code) is code

    def test_a_downgrade_names_what_it_drops(self):
        invalid = table_features.check_transition(legacy(1, 3), legacy(1, 2))
        assert invalid is not None
        assert "drops ['checkConstraints']" in invalid.detail

    @given(protocols, protocols)
    def test_what_is_added_and_what_is_removed(self, old, new):
        had, has = table_features.implied_features(old), table_features.implied_features(new)
        assert table_features.added_features(new, old) == has - had
        assert table_features.removes_features(new, old) == bool(had - has)


# Delta's failConcurrentTransactionsAtUpgrade, feature by feature.
HARMLESS = {
    "appendOnly", "catalogManaged", "changeDataFeed", "columnMapping", "deletionVectors",
    "domainMetadata", "icebergCompatV1", "icebergCompatV2", "icebergCompatV3",
    "inCommitTimestamp", "rowTracking", "timestampNtz", "typeWidening",
    "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck",
}  # fmt: skip


class TestConcurrentUpgrade:
    def test_the_features_that_fail_concurrent_transactions(self):
        assert FEATURES.keys() - table_features.FAILS_CONCURRENT_AT_UPGRADE == HARMLESS

    def test_one_such_feature_is_enough_and_an_unknown_one_is_such(self):
        assert not table_features.fails_concurrent([])
        assert not table_features.fails_concurrent(HARMLESS)
        assert table_features.fails_concurrent(["appendOnly", "checkConstraints"])
        assert table_features.fails_concurrent(["appendOnly", "new"])


class TestRequired:
    @pytest.mark.parametrize(
        ("configuration", "used"),
        [
            ({}, set()),
            ({"delta.appendOnly": "false", "delta.checkpointPolicy": "classic"}, set()),
            ({"delta.appendOnly": "true"}, {"appendOnly"}),
            ({"delta.constraints.c": "a > 0"}, {"checkConstraints"}),
            ({"delta.enableChangeDataCapture": "true"}, {"changeDataFeed"}),
            ({"delta.enableDeletionVectors": "true"}, {"deletionVectors"}),
            ({"delta.enableInCommitTimestamps": "true"}, {"inCommitTimestamp"}),
            ({"delta.columnMapping.mode": "id"}, {"columnMapping"}),
            ({"delta.checkpointPolicy": "v2"}, {"v2Checkpoint"}),
            ({"delta.enableRowTracking": "true"}, {"rowTracking", "domainMetadata"}),
            (
                {"delta.enableIcebergCompatV3": "true"},
                {"icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata"},
            ),
            (
                {"delta.coordinatedCommits.commitCoordinator-preview": "x"},
                {"coordinatedCommits-preview", "inCommitTimestamp", "vacuumProtocolCheck"},
            ),
        ],
    )
    def test_properties_use_features(self, configuration, used):
        found = table_features.required_features(
            properties(**configuration), of(), catalog_managed=False
        )
        assert found == used

    @pytest.mark.parametrize(
        ("schema", "used"),
        [
            (of(TIMESTAMP_NTZ), {"timestampNtz"}),
            (of(VARIANT), {"variantType"}),
            (of(ArrayType(element=TIMESTAMP_NTZ, contains_null=True)), {"timestampNtz"}),
            (of(MapType(key=VARIANT, value=LONG, value_contains_null=True)), {"variantType"}),
            (
                of(MapType(key=LONG, value=of(TIMESTAMP_NTZ), value_contains_null=True)),
                {"timestampNtz"},
            ),
            (of(**{"delta.invariants": "{}"}), {"invariants"}),
            (of(of(**{"delta.generationExpression": "1"})), {"generatedColumns"}),
            (of(**{"delta.identity.start": 1}), {"identityColumns"}),
            (of(**{"delta.columnMapping.physicalName": "x"}), {"columnMapping"}),
            (of(**{"CURRENT_DEFAULT": "1"}), {"allowColumnDefaults"}),
            (of(**{"__COLLATIONS": {}}), {"collations-preview", "domainMetadata"}),
            (of(comment="x"), set()),
        ],
    )
    def test_schemas_use_features(self, schema, used):
        found = table_features.required_features(properties(), schema, catalog_managed=False)
        assert found == used

    def test_a_catalog_managed_table_uses_more(self):
        assert table_features.required_features(properties(), of(), catalog_managed=True) == {
            "catalogManaged",
            "inCommitTimestamp",
            "vacuumProtocolCheck",
        }

    def test_what_the_protocol_lacks(self):
        wanted = properties(**{"delta.appendOnly": "true", "delta.constraints.c": "a > 0"})
        assert table_features.missing_features(legacy(1, 1), wanted, of()) == {
            "appendOnly",
            "checkConstraints",
        }
        assert table_features.missing_features(legacy(1, 2), wanted, of()) == {"checkConstraints"}
        assert table_features.missing_features(legacy(1, 3), wanted, of()) == frozenset()

    def test_a_preview_stands_for_its_feature(self):
        previewed = listed({"variantType-preview"}, {"variantType-preview"})
        assert table_features.missing_features(previewed, properties(), of(VARIANT)) == frozenset()

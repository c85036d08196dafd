"""The lowest protocol for a table: of a new one, and after features are added."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.features.test_features import (
    LEGACY_2,
    LEGACY_4,
    legacy,
    listed,
    of,
    properties,
    protocols,
)
from tidegate_protocol.features import table_features
from tidegate_protocol.features.known import FEATURES
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.schema.table_schema import TIMESTAMP_NTZ


def new(catalog_managed: bool = False, **configuration: str) -> Protocol:
    return table_features.protocol_for(
        properties(**configuration), of(), catalog_managed=catalog_managed
    )


class TestNewTable:
    def test_a_plain_table_has_deltas_default(self):
        assert new() == legacy(1, 2)

    @pytest.mark.parametrize(
        ("configuration", "protocol"),
        [
            ({"delta.appendOnly": "true"}, legacy(1, 2)),
            ({"delta.constraints.c": "a > 0"}, legacy(1, 3)),
            ({"delta.enableInCommitTimestamps": "true"}, listed(LEGACY_2 | {"inCommitTimestamp"})),
            (
                {"delta.enableDeletionVectors": "true"},
                listed(LEGACY_2 | {"deletionVectors"}, {"deletionVectors"}),
            ),
            ({"delta.feature.domainMetadata": "supported"}, listed(LEGACY_2 | {"domainMetadata"})),
            ({"delta.feature.DOMAINMETADATA": "enabled"}, listed(LEGACY_2 | {"domainMetadata"})),
            ({"delta.minReaderVersion": "1", "delta.minWriterVersion": "1"}, legacy(1, 1)),
            ({"delta.minWriterVersion": "4"}, legacy(1, 4)),
            ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "4"}, legacy(1, 4)),
            ({"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, legacy(2, 5)),
            (
                {"delta.minReaderVersion": "1", "delta.minWriterVersion": "1",
                 "delta.appendOnly": "true"},
                listed({"appendOnly"}),
            ),
            (
                {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7",
                 "delta.feature.vacuumProtocolCheck": "supported"},
                listed({"vacuumProtocolCheck"}, {"vacuumProtocolCheck"}),
            ),
            ({"delta.columnMapping.mode": "name"}, listed(LEGACY_2 | {"columnMapping"}, version=2)),
            ({"delta.enableChangeDataFeed": "true"}, listed(LEGACY_2 | {"changeDataFeed"})),
        ],
    )  # fmt: skip
    def test_properties_ask_for_protocols(self, configuration, protocol):
        assert new(**configuration) == protocol

    def test_a_timestamp_without_a_zone_needs_its_feature(self):
        protocol = table_features.protocol_for(
            properties(), of(TIMESTAMP_NTZ), catalog_managed=False
        )
        assert protocol == listed(LEGACY_2 | {"timestampNtz"}, {"timestampNtz"})

    @pytest.mark.parametrize(
        ("catalog_managed", "configuration"),
        [(True, {}), (False, {"delta.feature.catalogManaged": "supported"})],
    )
    def test_a_catalog_managed_table(self, catalog_managed, configuration):
        protocol = new(catalog_managed, **configuration)
        both = {"catalogManaged", "vacuumProtocolCheck"}
        assert protocol == listed(LEGACY_2 | both | {"inCommitTimestamp"}, both)
        assert table_features.check_supported(protocol) is None

    def test_it_may_ask_for_more_than_there_is(self):
        invalid = table_features.check_supported(new(**{"delta.feature.new": "supported"}))
        assert invalid is not None
        assert "'new'" in invalid.detail


class TestUpgrade:
    @pytest.mark.parametrize(
        ("before", "added", "after"),
        [
            (legacy(1, 1), {"appendOnly", "invariants"}, legacy(1, 2)),
            (legacy(1, 1), {"appendOnly"}, listed({"appendOnly"})),
            (legacy(1, 2), {"checkConstraints"}, legacy(1, 3)),
            (legacy(1, 2), {"changeDataFeed"}, listed(LEGACY_2 | {"changeDataFeed"})),
            (legacy(1, 4), {"columnMapping"}, legacy(2, 5)),
            (legacy(2, 5), {"timestampNtz"},
             listed(LEGACY_4 | {"columnMapping", "timestampNtz"},
                    {"columnMapping", "timestampNtz"})),
            (listed(set(), set()), {"inCommitTimestamp"}, listed({"inCommitTimestamp"})),
            (listed({"rowTracking", "domainMetadata"}), set(),
             listed({"rowTracking", "domainMetadata"})),
            (listed({"domainMetadata"}), {"clustering"}, listed({"domainMetadata", "clustering"})),
            (listed(set()), {"rowTracking"}, listed({"domainMetadata", "rowTracking"})),
        ],
    )  # fmt: skip
    def test_the_lowest_protocol_with_more_features(self, before, added, after):
        assert table_features.with_features(before, added) == after

    @given(protocols, st.sets(st.sampled_from(sorted(FEATURES))))
    def test_nothing_is_lost_and_no_more_than_needed_is_gained(self, before, added):
        after = table_features.with_features(before, added)
        supported = table_features.implied_features(after)
        assert supported >= table_features.implied_features(before) | added
        needed = {name for feature in supported for name in FEATURES[feature].requires}
        assert supported <= table_features.implied_features(before) | added | needed
        assert table_features.with_features(after, ()) == after
        assert not table_features.removes_features(after, before)

    @given(st.sets(st.sampled_from(sorted(table_features.SUPPORTED_WRITER_FEATURES))))
    def test_supported_features_make_supported_protocols(self, added):
        assert (
            table_features.check_supported(table_features.with_features(legacy(1, 2), added))
            is None
        )

"""Table properties: what they say, and which ones a new table may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.features.properties import (
    MAX_PROPERTIES,
    MAX_PROPERTY_LENGTH,
    InvalidProperty,
    TableProperties,
    canonical,
    check_new,
    storable,
)
from tidegate_protocol.proposal.transaction import IsolationLevel

parse = TableProperties.parse


class TestParse:
    def test_defaults(self):
        properties = parse({})
        assert properties == TableProperties()
        assert properties.isolation_level is IsolationLevel.SERIALIZABLE
        assert properties.num_indexed_columns == 32
        assert properties.string_prefix_length == 32
        assert properties.stats_columns is None
        assert not properties.statistics_disjointness

    @pytest.mark.parametrize(
        ("name", "text", "attribute", "value"),
        [
            ("delta.isolationLevel", "WriteSerializable", "isolation_level", "WriteSerializable"),
            ("delta.isolationLevel", "WRITESERIALIZABLE", "isolation_level", "WriteSerializable"),
            ("delta.isolationLevel", "serializable", "isolation_level", "Serializable"),
            ("delta.appendOnly", "true", "append_only", True),
            ("delta.appendOnly", "TRUE", "append_only", True),
            ("delta.appendOnly", "false", "append_only", False),
            ("delta.enableInCommitTimestamps", "true", "in_commit_timestamps", True),
            (
                "delta.inCommitTimestampEnablementVersion",
                "3",
                "in_commit_timestamp_enablement_version",
                3,
            ),
            (
                "delta.inCommitTimestampEnablementTimestamp",
                "1700000000000",
                "in_commit_timestamp_enablement_timestamp",
                1_700_000_000_000,
            ),
            ("delta.dataSkippingNumIndexedCols", "-1", "num_indexed_columns", -1),
            ("delta.dataSkippingNumIndexedCols", "0", "num_indexed_columns", 0),
            (
                "delta.dataSkippingStatsColumns",
                "a, `b.c`.d",
                "stats_columns",
                (("a",), ("b.c", "d")),
            ),
            ("delta.dataSkippingStatsColumns", "", "stats_columns", ()),
            ("delta.dataSkippingStringPrefixLength", "5", "string_prefix_length", 5),
            ("delta.enableDeletionVectors", "true", "deletion_vectors", True),
            ("tidegate.statisticsDisjointness", "true", "statistics_disjointness", True),
            ("delta.columnMapping.mode", "name", "column_mapping", True),
            ("delta.columnMapping.mode", "none", "column_mapping", False),
            ("delta.enableRowTracking", "true", "enabled", {"delta.enableRowTracking"}),
            ("delta.constraints.positive", "a > 0", "constraints", {"positive": "a > 0"}),
            (
                "delta.feature.deletionVectors",
                "supported",
                "requested_features",
                {"deletionVectors"},
            ),
            ("delta.feature.x", "Enabled", "requested_features", {"x"}),
            ("delta.minReaderVersion", "3", "requested_versions", (3, 2)),
            ("delta.minWriterVersion", "7", "requested_versions", (1, 7)),
        ],
    )
    def test_a_property_is_typed(self, name, text, attribute, value):
        properties = parse({name: text, "mine": "kept"})
        assert getattr(properties, attribute) == value
        assert properties.configuration == {name: text, "mine": "kept"}

    def test_stored_names_are_read_case_and_all_as_delta_does(self):
        assert not parse({"DELTA.APPENDONLY": "true"}).append_only

    def test_unknown_properties_are_kept(self):
        configuration = {"delta.fromTheFuture": "1", "x": "", "tidegate.new": "y"}
        assert parse(configuration).configuration == configuration

    @pytest.mark.parametrize(
        ("name", "text", "why"),
        [
            ("delta.isolationLevel", "SnapshotIsolation", "one of Serializable, WriteSerializable"),
            ("delta.isolationLevel", "", "one of Serializable"),
            ("delta.appendOnly", "yes", "expected true or false"),
            ("delta.appendOnly", " true", "expected true or false"),
            ("delta.enableInCommitTimestamps", "1", "expected true or false"),
            ("delta.inCommitTimestampEnablementVersion", "-1", "an integer of at least 0"),
            ("delta.inCommitTimestampEnablementTimestamp", "now", "expected an integer"),
            ("delta.inCommitTimestampEnablementTimestamp", "9" * 5000, "expected an integer"),
            ("delta.dataSkippingNumIndexedCols", "-2", "an integer of at least -1"),
            ("delta.dataSkippingNumIndexedCols", "1_0", "an integer of at least -1"),
            ("delta.dataSkippingNumIndexedCols", "٣", "an integer of at least -1"),
            ("delta.dataSkippingStatsColumns", "a,,b", "expected a name at 2"),
            ("delta.dataSkippingStringPrefixLength", "1.5", "an integer of at least 0"),
            ("delta.columnMapping.mode", "index", "one of none, name, id"),
            ("delta.feature.deletionVectors", "off", "expected 'supported'"),
            ("delta.minReaderVersion", "two", "an integer of at least 1"),
        ],
    )
    def test_a_value_that_cannot_be_is_refused_by_name(self, name, text, why):
        with pytest.raises(InvalidProperty, match=why) as caught:
            parse({name: text})
        assert str(caught.value).startswith(f"{name} is ")
        assert len(str(caught.value)) < 400

    def test_properties_that_change_nothing_here_are_not_judged(self):
        assert parse({"delta.logRetentionDuration": "forever"}).configuration

    def test_there_are_only_so_many(self):
        most = {f"p{number}": "" for number in range(MAX_PROPERTIES)}
        assert parse(most).configuration == most
        with pytest.raises(InvalidProperty, match=f"there are {MAX_PROPERTIES + 1} table prop"):
            parse({**most, "one more": ""})

    def test_they_are_only_so_long(self):
        assert parse({"p": "v" * MAX_PROPERTY_LENGTH}).configuration
        with pytest.raises(InvalidProperty, match="p has more than 65536 characters"):
            parse({"p": "v" * (MAX_PROPERTY_LENGTH + 1)})

    @given(st.dictionaries(st.text(), st.text()))
    def test_free_properties_are_never_an_error(self, configuration):
        assert parse(configuration).configuration == configuration


class TestNewTable:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("mine", "anything"),
            ("", ""),
            ("delta", "x"),
            ("DELTA.appendonly", "true"),
            ("delta.constraints.c", "a > 0"),
            ("delta.feature.timestampNtz", "supported"),
            ("delta.logRetentionDuration", "interval 30 days"),
            ("delta.logRetentionDuration", "2 weeks 1 day"),
            ("delta.deletedFileRetentionDuration", "INTERVAL 0 hours"),
            ("delta.checkpointInterval", "10"),
            ("delta.autoOptimize.autoCompact", "auto"),
            ("delta.parquet.compression.codec", "zstd"),
            ("delta.minWriterVersion", "7"),
            ("tidegate.statisticsDisjointness", "false"),
        ],
    )
    def test_what_it_may_have(self, name, text):
        check_new({name: text})

    @pytest.mark.parametrize(
        ("configuration", "why"),
        [
            ({"delta.apendOnly": "true"}, "specified: delta.apendOnly; "),
            ({"Delta.Nothing": "x"}, "specified: Delta.Nothing; "),
            ({"tidegate.fast": "x"}, "specified: tidegate.fast; "),
            ({"delta." + "x" * 1000: "x"}, "specified: delta.xxx"),
            ({"delta.APPENDONLY": "maybe"}, "delta.appendOnly is 'maybe': expected true or false"),
            ({"delta.checkpointInterval": "0"}, "an integer of at least 1 and at most 100,000"),
            (
                {"delta.checkpointInterval": "100001"},
                "an integer of at least 1 and at most 100,000",
            ),
            (
                {"delta.checkpointInterval": "2147483648"},
                "an integer of at least 1 and at most 100,000",
            ),
            ({"delta.logRetentionDuration": "1 month"}, "expected an interval"),
            ({"delta.logRetentionDuration": ""}, "expected an interval"),
            ({"delta.logRetentionDuration": "7"}, "expected an interval"),
            ({"delta.checkpointPolicy": "v3"}, "one of classic, v2"),
            ({"delta.feature.x": "no"}, "expected 'supported'"),
            ({"delta.appendOnly": "true", "delta.appendonly": "true"}, "set twice"),
            ({"mine": "a", "MINE": "b"}, "set twice"),
            ({"a\0": "b"}, "NUL"),
            ({"a": "b\0"}, "NUL"),
        ],
    )
    def test_what_it_may_not_have(self, configuration, why):
        with pytest.raises(InvalidProperty, match=why) as caught:
            check_new(configuration)
        assert len(str(caught.value)) < 400

    def test_known_names_are_spelled_as_delta_does(self):
        given_ = {"DELTA.appendonly": "true", "Mine": "x", "delta.Constraints.C": "a"}
        assert canonical(given_) == {
            "delta.appendOnly": "true",
            "Mine": "x",
            "delta.Constraints.C": "a",
        }

    def test_what_only_asks_for_a_protocol_is_not_stored(self):
        asked = {
            "delta.MINREADERVERSION": "3",
            "delta.minWriterVersion": "7",
            "delta.ignoreProtocolDefaults": "true",
            "delta.Feature.x": "supported",
        }
        assert storable({**asked, "DELTA.APPENDONLY": "true"}) == {"delta.appendOnly": "true"}
        properties = parse(canonical(asked))
        assert properties.requested_versions == (3, 7)
        assert properties.requested_features == {"x"}

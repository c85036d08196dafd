"""Tables that this client does not write to, or does not read."""

import pytest
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, VariantType

from tests.spark.layouts import layout_of
from tidegate.spark import UnsupportedTable
from tidegate.spark.tables.refusals import (
    check_readable,
    check_writable,
    check_writable_by_arrow,
)
from tidegate_protocol.log.actions import Protocol

PLAIN = Protocol(min_reader_version=1, min_writer_version=2)
COLUMN_RULES = [
    ({"delta.invariants": '{"expression":{"expression":"a > 1"}}'}, "invariants"),
    ({"delta.generationExpression": "b + 1"}, "generatedColumns"),
    ({"delta.identity.start": 1, "delta.identity.step": 1}, "identityColumns"),
    ({"CURRENT_DEFAULT": "'x'"}, "allowColumnDefaults"),
    ({"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}, "char and varchar lengths"),
]


def features(*names):
    return Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset(),
        writer_features=frozenset(names),
    )


class TestWriting:
    @pytest.mark.parametrize(("metadata", "named"), COLUMN_RULES)
    def test_a_rule_in_a_column_is_named(self, metadata, named):
        schema = StructType([StructField("a", StringType(), metadata=metadata)])
        with pytest.raises(UnsupportedTable, match=f"column a .* uses {named}") as refusal:
            check_writable_by_arrow(layout_of(schema), PLAIN)
        assert refusal.value.definite

    @pytest.mark.parametrize(("metadata", "named"), COLUMN_RULES)
    def test_spark_s_plan_enforces_some(self, metadata, named):
        data_type = LongType() if named == "identityColumns" else StringType()
        schema = StructType([StructField("a", data_type, metadata=metadata)])
        if named != "columnMapping":
            assert check_writable(layout_of(schema), PLAIN) is None
        else:
            with pytest.raises(UnsupportedTable, match=f"column a .* uses {named}"):
                check_writable(layout_of(schema), PLAIN)

    def test_lengths_inside_of_a_column_are_named(self):
        metadata = {"__CHAR_VARCHAR_TYPE_STRING": "array<varchar(3)>"}
        schema = StructType([StructField("a", ArrayType(StringType()), metadata=metadata)])
        with pytest.raises(UnsupportedTable, match=r"column a .* char and varchar lengths"):
            check_writable(layout_of(schema), PLAIN)

    def test_a_rule_deep_inside_is_found(self):
        inner = StructType([StructField("x", StringType(), metadata=COLUMN_RULES[0][0])])
        schema = StructType([StructField("a", ArrayType(inner))])
        with pytest.raises(UnsupportedTable, match=r"column a\.element\.x"):
            check_writable(layout_of(schema), PLAIN)

    def test_check_constraints_are_named(self):
        layout = layout_of("a int", properties={"delta.constraints.positive": "a > 0"})
        with pytest.raises(UnsupportedTable, match=r"CHECK constraints \['positive'\]") as refusal:
            check_writable_by_arrow(layout, PLAIN)
        assert "Table.append" in str(refusal.value)
        assert check_writable(layout, PLAIN) is None

    @pytest.mark.parametrize(
        ("properties", "named"),
        [
            ({"delta.enableIcebergCompatV2": "true"}, "icebergCompatV2"),
            ({"delta.enableVariantShredding": "true"}, "variantShredding"),
            ({"delta.enableMaterializePartitionColumnsFeature": "true"}, "materializePartition"),
        ],
    )
    def test_features_in_use_are_named(self, properties, named):
        with pytest.raises(UnsupportedTable, match=named):
            check_writable(layout_of("a int", properties=properties), PLAIN)

    @pytest.mark.parametrize("name", ["brandNew", "redirectWriterOnly-preview"])
    def test_a_feature_that_asks_for_more_is_named(self, name):
        with pytest.raises(UnsupportedTable, match=name):
            check_writable(layout_of("a int"), features(name))

    @pytest.mark.parametrize(
        ("properties", "protocol"),
        [
            ({}, PLAIN),
            ({"delta.appendOnly": "true"}, PLAIN),
            ({"delta.enableChangeDataFeed": "true"}, PLAIN),
            ({"delta.enableDeletionVectors": "true"}, features("appendOnly")),
            ({"delta.checkpointInterval": "5", "owner": "me"}, features("domainMetadata")),
            ({"delta.enableRowTracking": "true"}, features("rowTracking", "domainMetadata")),
            ({"delta.checkpointPolicy": "v2"}, features("checkpointProtection")),
            ({"delta.enableTypeWidening": "true"}, PLAIN),
            ({}, features("clustering", "domainMetadata")),
        ],
    )
    def test_others_are_written_to(self, properties, protocol):
        layout = layout_of("a int NOT NULL, b struct<x:int>", properties=properties)
        assert check_writable(layout, protocol) is None


class TestReading:
    @pytest.mark.parametrize("mode", ["name", "id"])
    def test_mapped_columns_are_read(self, mode):
        metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
        schema = StructType([StructField("a", StringType(), metadata=metadata)])
        layout = layout_of(schema, properties={"delta.columnMapping.mode": mode})
        assert check_readable(layout, PLAIN) is None

    def test_types_that_were_others_are_read(self):
        changes = [{"fromType": "integer", "toType": "long"}]
        schema = StructType([StructField("a", LongType(), metadata={"delta.typeChanges": changes})])
        assert check_readable(layout_of(schema), PLAIN) is None
        assert check_writable(layout_of(schema), PLAIN) is None

    def test_variants_are_refused(self):
        schema = StructType([StructField("a", LongType()), StructField("v", VariantType())])
        with pytest.raises(UnsupportedTable, match="variantType"):
            check_readable(layout_of(schema), PLAIN)

    def test_check_constraints_do_not_keep_readers_out(self):
        layout = layout_of("a int", properties={"delta.constraints.positive": "a > 0"})
        assert check_readable(layout, PLAIN) is None

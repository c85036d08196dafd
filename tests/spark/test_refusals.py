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
    def test_partition_columns_that_belong_into_files_are_named(self):
        protocol = features("materializePartitionColumns")
        for check in (check_writable, check_writable_by_arrow):
            with pytest.raises(UnsupportedTable, match="materializePartitionColumns"):
                check(layout_of("a int, p int", partition_by=("p",)), protocol)
            assert check(layout_of("a int"), protocol) is None

    @pytest.mark.parametrize(("metadata", "named"), COLUMN_RULES)
    def test_a_rule_in_a_column_is_named(self, metadata, named):
        schema = StructType([StructField("a", StringType(), metadata=metadata)])
        with pytest.raises(UnsupportedTable, match=f"column a .* uses {named}") as refusal:
            check_writable_by_arrow(layout_of(schema), PLAIN)
        assert refusal.value.definite

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


class TestReading:
    def test_variants_are_refused(self):
        schema = StructType([StructField("a", LongType()), StructField("v", VariantType())])
        with pytest.raises(UnsupportedTable, match="variantType"):
            check_readable(layout_of(schema), PLAIN)

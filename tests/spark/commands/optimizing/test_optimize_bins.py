"""OPTIMIZE puts files of one partition together."""

from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

from tests.spark.layouts import layout_of
from tidegate import DataFile
from tidegate.spark.optimize.bins import bins_of
from tidegate_protocol.log.actions import DeletionVector

PLAIN = layout_of(StructType([StructField("a", IntegerType())]))


def file(size, *, name=None, rows=None, deleted=0, **partition):
    vector = DeletionVector(
        storage_type="i", path_or_inline_dv="", size_in_bytes=1, cardinality=deleted
    )
    return DataFile(
        path=name or f"f{size}",
        partition_values=partition,
        size=size,
        modification_time=0,
        data_change=True,
        stats=None if rows is None else f'{{"numRecords":{rows}}}',
        deletion_vector=vector if deleted else None,
    )


def sizes(bins) -> list[list[int]]:
    return [[each.size for each in bin_.files] for bin_ in bins]


class TestBins:
    def test_are_of_one_partition(self):
        schema = StructType([*PLAIN.spark_schema.fields, StructField("p", TimestampType())])
        layout = layout_of(schema, partition_by=("p",))
        spelt = ["2026-01-01 00:00:00", "2026-01-01T00:00:00.000000Z", "2026-01-02 00:00:00", None]
        files = [file(n + 1, p=value) for n, value in enumerate(spelt)]
        found = bins_of(files, layout, zone="UTC", max_size=100, least=1)
        assert sizes(found) == [[1, 2], [3], [4]]
        elsewhere = bins_of(files, layout, zone="America/Los_Angeles", max_size=100, least=1)
        assert sizes(elsewhere) == [[1], [2], [3], [4]]

"""The columns that a table is clustered by, by name and in the domain."""

import pytest

from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.scan.clustering import (
    InvalidClustering,
    clustering_columns,
    columns_at,
    domain_of,
    physical_paths,
    shown,
)
from tidegate_protocol.scan.statistics_writing import statistics_columns
from tidegate_protocol.schema.data_types import (
    BOOLEAN,
    LONG,
    STRING,
    ArrayType,
    Field,
    StructType,
)

MAPPED = {"delta.columnMapping.physicalName": "col-1"}
SCHEMA = StructType(
    fields=(
        Field(name="a", type=LONG),
        Field(name="S", type=StructType(fields=(Field(name="x.y", type=STRING, metadata=MAPPED),))),
        Field(name="flag", type=BOOLEAN),
        Field(name="list", type=ArrayType(element=LONG, contains_null=True)),
        Field(name="d", type=LONG),
        Field(name="e", type=LONG),
        Field(name="last", type=LONG),
    )
)


def chosen(*names, partitions=(), **properties):
    return clustering_columns(
        names,
        schema=SCHEMA,
        properties=TableProperties.parse({f"delta.{name}": v for name, v in properties.items()}),
        partition_columns=partitions,
    )


def test_names_become_physical_paths_and_names_again():
    columns = chosen("A", "s.`X.y`")
    action = domain_of(columns)
    assert action.configuration == (
        '{"clusteringColumns":[["a"],["S","col-1"]],"domainName":"delta.clustering"}'
    )
    physical = physical_paths(action.configuration)
    assert physical == (("a",), ("S", "col-1"))
    assert [shown(column) for column in columns_at(SCHEMA, physical)] == ["a", "S.`x.y`"]


def test_depth_is_no_configuration():
    with pytest.raises(ValueError, match="depth"):
        physical_paths('{"clusteringColumns":[],"x":' + "[" * 5000 + "]" * 5000 + "}")


def test_a_column_may_stand_there_by_its_name_alone():
    assert physical_paths('{"clusteringColumns":["a",["S","x"]]}') == (("a",), ("S", "x"))


@pytest.mark.parametrize(
    ("names", "more", "error_class", "words"),
    [
        (["nope"], {}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "nope"),
        (["a b"], {}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "a b"),
        (["a", "A"], {}, "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY", "a"),
        (
            ["a", "s.`x.y`", "d", "e", "last"],
            {},
            "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            "up to 4 clustering columns, but the table has 5",
        ),
        (["S"], {}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "S : struct"),
        (["flag"], {}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "flag : boolean"),
        (["list"], {}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED", "list : array<long>"),
        (
            ["a", "last"],
            {"dataSkippingNumIndexedCols": "1"},
            "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            "'last' in stats schema: [a]",
        ),
        (["a"], {"partitions": ["d"]}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY", "partition"),
    ],
)
def test_refusals(names, more, error_class, words):
    with pytest.raises(InvalidClustering) as refusal:
        chosen(*names, **more)
    assert refusal.value.error_class == error_class
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "properties", [{"dataSkippingNumIndexedCols": "1"}, {"dataSkippingStatsColumns": "a"}]
)
def test_its_statistics_are_collected_whatever_the_properties_say(properties):
    parsed = TableProperties.parse({f"delta.{name}": v for name, v in properties.items()})
    collected = statistics_columns(SCHEMA, parsed, (), clustering=[("S", "col-1"), ("last",)])
    assert [leaf.path[-1] for leaf in collected] == ["a", "x.y", "last"]

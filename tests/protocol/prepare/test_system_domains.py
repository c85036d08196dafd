"""Domains of table features: who may write them, and what."""

import json

import pytest

from tests.builders.actions import add, domain, features, metadata
from tests.builders.ledgers import prepared, state
from tests.builders.lines import column
from tests.protocol.racing import refused
from tidegate_protocol.base.problems import Code
from tidegate_protocol.prepare.system_domains import MAX_CLUSTERING_COLUMNS

CLUSTERING = "delta.clustering"
PROTOCOL = features("clustering", "domainMetadata", readers=["columnMapping", "variantType"])
SCHEMA = [
    column("v"),
    column("s", {"type": "struct", "fields": [column("f", "string")]}),
    column("a", {"type": "array", "elementType": "integer", "containsNull": True}),
    column("j", "variant"),
]
AT = state(metadata(SCHEMA), PROTOCOL)


def clustering(*columns, **fields):
    text = json.dumps({"clusteringColumns": list(columns), "domainName": CLUSTERING})
    return domain(CLUSTERING, text, **fields)


@pytest.mark.parametrize("columns", [[["v"]], [["s", "f"], ["v"]], ["v"], []])
def test_clustering_by_columns(columns):
    prepared(clustering(*columns), at=AT, operation="CLUSTER BY")


@pytest.mark.parametrize("column_", [["x"], ["s"], ["s", "x"], ["v", "x"], ["a"], ["j"], "x"])
def test_columns_that_cannot_be_ordered(column_):
    invalid = refused(clustering(["v"], column_), at=AT)
    assert (invalid.code, invalid.action_index) == (Code.INVALID_ACTION, 0)
    assert "clustering column" in invalid.detail


def test_a_column_is_named_once():
    assert "named twice" in refused(clustering(["v"], ["s", "f"], "v"), at=AT).detail


def test_there_are_only_so_many():
    """Each is looked up in the schema: names times fields would take seconds."""
    columns = [f"c{number}" for number in range(MAX_CLUSTERING_COLUMNS + 1)]
    at = state(metadata(list(map(column, columns))), PROTOCOL)
    prepared(clustering(*columns[1:]), at=at)
    assert "at most 1000" in refused(clustering(*columns), at=at).detail


def test_columns_go_by_their_physical_names():
    marks = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}
    properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    at = state(metadata([column("v", **marks)], properties=properties), PROTOCOL)
    prepared(clustering(["c1"]), at=at)
    assert "physical" in refused(clustering(["v"]), at=at).detail


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"clusteringColumns":[1]}'])
def test_what_is_no_clustering(text):
    assert refused(domain(CLUSTERING, text), at=AT).code is Code.INVALID_ACTION


def test_it_needs_its_feature():
    at = state(metadata(SCHEMA), features("domainMetadata", readers=["variantType"]))
    assert refused(clustering(["v"]), at=at).code is Code.UNSUPPORTED_FEATURE
    prepared(clustering(removed=True), at=at)


def test_it_excludes_partitions():
    at = state(metadata(["v", "w"], ["v"]), PROTOCOL)
    assert "partitioned" in refused(clustering(["w"]), at=at).detail
    prepared(clustering(), at=at)


def test_domains_of_unknown_features():
    invalid = refused(add(), domain("delta.sorcery"), at=AT)
    assert (invalid.code, invalid.action_index) == (Code.UNSUPPORTED_FEATURE, 1)
    prepared(domain("sorcery"), at=AT)

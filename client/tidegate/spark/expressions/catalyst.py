"""Catalyst's resolved expressions as trees in Python, in few calls of the JVM."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.spark.expressions.instant import with_words
from tidegate.spark.storage.hadoop import JavaObject, active, java_class, jvm_of
from tidegate.spark.tables.zones import is_utc, session_zone

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_RULES = (
    "ReplaceExpressions",
    "RewriteWithExpression",
    "LikeSimplification",
    "ConstantFolding",
    "UnwrapCastInBinaryComparison",
    "SimplifyCasts",
    "ConstantFolding",
)
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of Catalyst's tree: the name of its class, its fields, of which `dataType` is a name
    or a nested type, and its children."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple["Node", ...]


def tree_of(spark: SparkSession, expression: JavaObject) -> Node | None:
    """A condition as Spark's optimizer has it: without casts of columns where it can do without,
    with literals in the place of what names no column. None where parts of it are computed
    beforehand, once for several uses, where one cannot be, is of a class that Catalyst cannot
    describe, or has the time of the job."""
    jvm = jvm_of(spark)
    nothing = java_class(jvm, f"{_LOGICAL}.OneRowRelation")()
    alone = java_class(jvm, f"{_LOGICAL}.Filter")(expression, nothing)
    try:
        with active(spark):
            plan = with_words(spark, alone)
            if not plan.fastEquals(alone):
                return None
            for rule in _RULES:
                plan = java_class(jvm, f"{_OPTIMIZER}.{rule}").apply(plan)
        if not plan.child().fastEquals(nothing):
            return None
        found = plan.condition()
        nodes = json.loads(found.toJSON())
    except (Py4JJavaError, PySparkException):
        # Spark raises the same where a row needs the value.
        return None
    _write_times(nodes, found, in_utc=is_utc(session_zone(spark)))
    return _assembled(nodes)


def flat(node: Node, kind: str) -> Iterator[Node]:
    """The parts of a chain of AND or OR, which may be longer than Python nests calls."""
    left = [node]
    while left:
        found = left.pop()
        if found.kind == kind:
            left += reversed(found.children)
        else:
            yield found


def _assembled(nodes: Sequence[Mapping[str, Any]]) -> Node:
    """The tree of nodes in the order in which they begin."""
    found: list[Node] = []
    for fields in reversed(nodes):
        children = tuple(found.pop() for _ in range(fields["num-children"]))
        kind = str(fields["class"]).rpartition(".")[2]
        found.append(Node(kind=kind, fields=fields, children=children))
    (root,) = found
    return root


def _write_times(nodes: Sequence[dict[str, Any]], expression: JavaObject, *, in_utc: bool) -> None:
    """Give literals of times their text, from the microseconds that Catalyst has: in the JSON some
    are a text of the session's zone, in which an hour of autumn is there twice."""
    leaves = [node for node in nodes if not node["num-children"]]
    of_time = [
        i
        for i, leaf in enumerate(leaves)
        if leaf["class"].endswith(".Literal")
        and leaf["dataType"] in ("timestamp", "timestamp_ntz")
        and leaf["value"] is not None
    ]
    if not of_time:
        return
    found = expression.collectLeaves()
    for i in of_time:
        leaves[i]["text"] = _time(leaves[i], found.apply(i).value(), in_utc=in_utc)


def _time(leaf: Mapping[str, Any], microseconds: int, *, in_utc: bool) -> str | None:
    """In a session at UTC without a zone, as partition values are that have none."""
    data_type = leaf["dataType"]
    zone = UTC if data_type == "timestamp" and not in_utc else None
    try:
        found = (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=zone)
    except OverflowError:
        return None
    return f"{data_type.upper()}'{found.isoformat(sep=' ')}'"

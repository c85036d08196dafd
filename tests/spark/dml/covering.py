"""Few vectors that have whatever the vectors have.

A vector takes a second or two, and most of them differ from another one in values alone.
"""

from collections.abc import Hashable, Iterable, Iterator

from tests.spark.dml.vectors import Vector


def covering(vectors: Iterable[Vector]) -> list[Vector]:
    """The vectors that are the first with something, in their order."""
    seen: set[Hashable] = set()
    chosen = []
    for vector in vectors:
        facts = set(_facts(vector))
        if not facts <= seen:
            chosen.append(vector)
            seen |= facts
    return chosen


def _facts(vector: Vector) -> Iterator[Hashable]:
    """What the vector has.

    That is each operation and each expectation, with the family; each field of an operation, each
    clause of a MERGE, the error, each table feature and each setting of the session.
    """
    for op in vector.ops:
        kind = (op["op"], op.get("action"))
        yield vector.family, kind
        yield from ((kind, name) for name in op)
        for clause in op.get("clauses", ()):
            yield clause["when"], clause["action"], clause["and"] is not None
    yield from ((vector.family, name) for name in vector.expect)
    yield from vector.needs
    yield from vector.conf
    yield vector.expect.get("error")

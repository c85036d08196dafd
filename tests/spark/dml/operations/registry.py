"""The operations of vectors by their kind."""

from collections.abc import Callable

from tests.spark.dml.world import Operation

OPERATIONS: dict[str, Operation] = {}


def operation(kind: str) -> Callable[[Operation], Operation]:
    """Make a function the operation of this kind."""

    def register(function: Operation) -> Operation:
        assert kind not in OPERATIONS, f"there are two operations {kind}"
        OPERATIONS[kind] = function
        return function

    return register

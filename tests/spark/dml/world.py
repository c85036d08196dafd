"""What a vector's operations work on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.dml.vectors import Op, Vector
from tidegate import Lake, Table


@dataclass(kw_only=True)
class World:
    """A table, where there is one by now, and the way to it. `folder` is a vector's own.

    `place` is the folder that a target is which is no table, `cloned` what was made by CLONE.
    `first` is our version of the vector's version 0, and `told` what operations said, by the
    names of expectations.
    """

    spark: SparkSession
    lake: Lake
    vector: Vector
    name: str
    catalog_managed: bool
    folder: Path
    found: Table | None = None
    cloned: Table | None = None
    place: Path | None = None
    first: int = 0
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """The table, which has to be there."""
        assert self.found is not None, "the vector's target was not made"
        return self.found

    @property
    def clone(self) -> Table:
        """What was made of the table, which has to be there."""
        assert self.cloned is not None, "nothing was cloned"
        return self.cloned

    def version(self, number: int) -> int:
        """Ours of a vector's version."""
        return self.first + number


Operation = Callable[[World, Op], None]

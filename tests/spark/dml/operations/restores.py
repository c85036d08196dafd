"""RESTORE and VACUUM of vectors, and what a table has of its files and protocol afterwards."""

from tests.spark.dml.expect import expectation
from tests.spark.dml.operations.registry import operation
from tests.spark.dml.vectors import Op
from tests.spark.dml.world import World
from tidegate.spark.tables import DeltaTable
from tidegate_protocol.features.table_features import implied_features


@operation("restore")
def restore(world: World, op: Op) -> None:
    version = None if "version" not in op else world.version(op["version"])
    world.table.restore(version=version, timestamp=op.get("timestamp"), spark=world.spark)


@operation("vacuum")
def vacuum(world: World, op: Op) -> None:
    DeltaTable.over(world.spark, world.table).vacuum(op["retain_hours"])


@expectation("files_with_deletion_vectors")
def _files_with_deletion_vectors(world: World, value: int) -> None:
    files = world.table.scan().files
    assert sum(file.deletion_vector is not None for file in files) == value


@expectation("protocol_not_downgraded")
def _protocol_not_downgraded(world: World, value: bool) -> None:
    versions = range(world.first, world.table.version + 1)
    features = [implied_features(world.table.as_of(version).protocol) for version in versions]
    assert all(known <= features[-1] for known in features) is value

"""Targets of vectors that are folders of files, and no tables."""

from pathlib import Path

from tests.spark.dml.rows import frame, parsed
from tests.spark.dml.world import World


def build(world: World) -> None:
    """Write the files below the warehouse, where the service may have tables."""
    target = world.vector.target
    beside = world.lake.create_table(f"{world.name}_beside", schema=parsed("a INT"))
    world.place = Path(f"{beside.location.removeprefix('file://')}_folder")
    world.place.mkdir()
    for part in target.get("partitions", ()):
        folder = world.place / part["dir"]
        folder.mkdir()
        if part["rows"] is not None:
            rows = frame(world.spark, parsed(part["schema"]), part["rows"])
            rows.write.mode("append").parquet(str(folder))
    if target["rows"]:
        rows = frame(world.spark, parsed(target["schema"]), target["rows"])
        writer = rows.write.format(target["format"]).partitionBy(*target["partition_by"])
        writer.mode("append").save(str(world.place))

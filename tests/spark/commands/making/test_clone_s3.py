"""CLONE and CONVERT TO DELTA on S3: files copied by Hadoop, and paths of a bucket."""

from pyspark.sql.types import StructType

import tidegate
from tests.spark.reading.vectors import VECTORS
from tests.spark.tables import rows
from tidegate_protocol.log.paths import is_absolute


def test_clones_and_a_folder(s3_lake, s3_session, s3_source):
    spark = s3_session
    table = s3_lake.create_table(
        "main.s3_clones.t",
        schema=StructType.fromDDL("id bigint, p string"),
        partition_by="p",
        properties=VECTORS,
    )
    table.append(spark.range(6).selectExpr("id", "concat('a b/', id % 2) AS p").coalesce(1))
    table.delete("id = 2", spark=spark)
    shallow = table.clone("main.s3_clones.shallow", shallow=True, spark=spark).table
    deep = table.clone("main.s3_clones.deep", location=f"{table.location}_deep", spark=spark).table
    assert [is_absolute(each.scan().files[0].path) for each in (shallow, deep)] == [True, False]
    shallow.delete("id = 4", spark=spark)
    found = rows(table.read(spark))
    assert [row[0] for row in found] == [0, 1, 3, 4, 5]
    assert rows(deep.read(spark)) == rows(s3_source.read(deep)) == found
    assert rows(shallow.read(spark)) == rows(s3_source.read(shallow)) == [*found[:3], found[4]]

    place = f"{table.location}_folder"
    url = place.replace("s3://", "s3a://")
    spark.range(4).selectExpr("id", "int(id % 2) AS p").write.partitionBy("p").parquet(url)
    text = f"CONVERT TO DELTA parquet.`{url}` PARTITIONED BY (p INT) AS main.s3_clones.converted"
    tidegate.sql(spark, text, lake=s3_lake)
    converted = s3_lake.table("main.s3_clones.converted")
    assert converted.location == place
    assert rows(converted.read(spark)) == [(0, 0), (1, 1), (2, 0), (3, 1)]

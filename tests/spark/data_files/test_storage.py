"""Where data files lie, in words of Hadoop and Arrow, and what is said where nobody gets there."""

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from tidegate.spark import StorageError, UnsupportedSession, UnsupportedTable
from tidegate.spark.storage.arrow import ArrowStore, S3Settings
from tidegate.spark.storage.errors import missing_file_system, storage_refusal
from tidegate.spark.storage.hadoop import HadoopStore
from tidegate.spark.storage.locations import arrow_path, hadoop_url
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import Metadata


def layout_at(location: str) -> TableLayout:
    schema = StructType([StructField("a", IntegerType())]).json()
    metadata = Metadata(id="0", schema_string=schema, partition_columns=(), configuration={})
    return TableLayout.of(name="main.t", location=location, metadata=metadata)


class TestUrls:
    @pytest.mark.parametrize(
        ("location", "hadoop", "arrow"),
        [
            ("file:///a b/t", "file:///a b/t", "/a b/t"),
            ("file:/a", "file:///a", "/a"),
            ("s3://bucket/a/b", "s3a://bucket/a/b", "bucket/a/b"),
            ("s3a://bucket/a", "s3a://bucket/a", "bucket/a"),
            ("gs://bucket/a", "gs://bucket/a", "bucket/a"),
            ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x", None),
        ],
    )
    def test_a_location_is_spelt_as_each_has_it(self, location, hadoop, arrow):
        assert hadoop_url(location) == hadoop
        if arrow is not None:
            assert arrow_path(location) == arrow

    @pytest.mark.parametrize("location", ["hdfs://name/a", "az://container/a", "r2://x/y"])
    def test_a_table_elsewhere_is_refused_by_its_location(self, location):
        with pytest.raises(UnsupportedTable, match=location):
            layout_at(location)

    def test_files_lie_below_the_location_or_where_their_path_says(self):
        layout = layout_at("s3://bucket/t")
        assert layout.url("p=a b/x") == "s3a://bucket/t/p=a b/x"
        assert layout.url("s3://other/x") == "s3a://other/x"
        assert layout.url("/other/x") == "s3a://bucket/other/x"
        assert layout.path("p=1/x") == "bucket/t/p=1/x"
        assert layout.path("s3a://other/x") == "other/x"
        local = layout_at("file:///t")
        assert local.url("file:/other/x") == "file:///other/x"
        assert local.path("/other/x") == "/other/x"


class TestSettings:
    def test_those_of_a_bucket_come_before_those_of_all(self):
        settings = S3Settings.of(
            {
                "endpoint": "https://all.example",
                "endpoint.region": "eu-north-1",
                "bucket.mine.endpoint.region": "eu-south-2",
                "threads.max": "10",
            }
        )
        assert settings.file_system("mine").region == "eu-south-2"
        assert settings.file_system("other").region == "eu-north-1"
        assert "threads.max" not in settings.values

    def test_secrets_are_not_shown(self):
        settings = S3Settings.of({"secret.key": "hush", "access.key": "who"})
        assert "hush" not in repr(settings)
        assert "who" not in repr(settings)

    def test_python_workers_reach_files_and_s3(self):
        with pytest.raises(UnsupportedSession, match=r"gs://bucket.*Table\.append"):
            ArrowStore("gs://bucket/t")


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("java.nio.file.AccessDeniedException: s3a://b/t: 403", "is not allowed to use it"),
            ("When reading: AWS Error ACCESS_DENIED during GetObject", "is not allowed to use it"),
            ("o.a.h.fs.s3a.UnknownStoreException: `s3a://b/'", "finds no such bucket"),
            (
                "java.nio.file.AccessDeniedException: b: NoAuthWithAWSException: none",
                "has no credentials for it",
            ),
            ("java.net.ConnectException: refused", "cannot reach it"),
        ],
    )
    def test_an_error_is_told_by_its_class(self, text, said):
        refusal = storage_refusal(f"Job aborted\n  {text}\n  at somewhere", url="s3a://b/t")
        assert isinstance(refusal, StorageError)
        assert said in refusal.detail
        assert text in refusal.detail
        assert refusal.hint
        assert refusal.definite

    def test_other_errors_are_left_alone(self):
        text = "java.lang.ClassNotFoundException: Class org.example.Codec not found"
        assert storage_refusal(text, url="s3a://b/t") is None
        assert missing_file_system(text, url="s3a://b/t", hadoop="1.2") is None

    @pytest.mark.parametrize(
        ("location", "jar"), [("gs://bucket/t", "hadoop-gcp"), ("abfss://c@a/t", "hadoop-azure")]
    )
    def test_a_missing_file_system_is_named_with_its_jar(self, spark, location, jar):
        version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        with pytest.raises(UnsupportedSession, match=f"no file system for {location[:2]}") as found:
            HadoopStore(spark, location).check()
        assert f"org.apache.hadoop:{jar}:{version}" in str(found.value)
        assert "spark.jars.packages" in str(found.value)

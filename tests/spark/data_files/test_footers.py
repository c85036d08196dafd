"""Statistics from Parquet footers, against the values that are really in the files."""

import io
import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.layouts import folder_of, layout_of
from tidegate.spark.columns.conform import conform
from tidegate.spark.data_files.footers import FooterColumns, statistics_of
from tidegate_protocol.scan.statistics_writing import ColumnStatistics
from tidegate_protocol.schema.data_types import DOUBLE


@pytest.fixture
def statistics(spark, table_folder):
    """Statistics of the only file that the rows of a query make in a table of given columns."""

    def write(query, columns, **options):
        layout = layout_of(columns, folder=table_folder, **options)
        df = conform(spark.sql(query).coalesce(1), layout)
        (add,) = folder_of(layout, "t").write(df).adds
        return json.loads(add.stats)

    return write


def bounds(stats, column="a"):
    return stats["minValues"].get(column), stats["maxValues"].get(column)


BOUNDED = [
    ("tinyint", ["CAST(-3 AS TINYINT)", "CAST(2 AS TINYINT)"], -3, 2),
    ("smallint", ["CAST(-300 AS SMALLINT)", "CAST(2 AS SMALLINT)"], -300, 2),
    ("int", ["-70000", "2"], -70000, 2),
    ("bigint", ["-5000000000L", f"{2**63 - 1}L"], -5000000000, 2**63 - 1),
    ("float", ["-1.5F", "2.25F"], -1.5, 2.25),
    ("double", ["-1.1D", "2.2D"], -1.1, 2.2),
    ("double", ["0.0D", "0.0D"], 0.0, 0.0),
    ("decimal(5,2)", ["-1.25", "999.99"], -1.25, 999.99),
    ("decimal(18,3)", ["-1.125", "2.000"], -1.125, 2.0),
    ("decimal(38,1)", ["-1.5", "2.5"], -1.5, 2.5),
    ("string", ["'ä'", "'b'"], "b", "ä"),
    ("date", ["DATE'1066-10-14'", "DATE'2024-02-29'"], "1066-10-14", "2024-02-29"),
    (
        "timestamp",
        [
            "TIMESTAMP'1969-12-31 23:59:59.999999 UTC'",
            "TIMESTAMP'2024-02-29 12:00:00.123999 UTC'",
        ],
        "1969-12-31T23:59:59.999Z",
        "2024-02-29T12:00:00.123Z",
    ),
    (
        "timestamp_ntz",
        ["TIMESTAMP_NTZ'1500-01-01 00:00:00.000001'", "TIMESTAMP_NTZ'2024-02-29 12:00:00'"],
        "1500-01-01T00:00:00.000",
        "2024-02-29T12:00:00.000",
    ),
]
"""A type, two values of it, and their bounds."""


class TestBounds:
    def test_of_every_type_that_has_them(self, statistics):
        names = [f"a{number}" for number in range(len(BOUNDED))]
        types, values, minima, maxima = zip(*BOUNDED, strict=True)
        query = " UNION ALL ".join(
            "SELECT " + ", ".join(map("{} AS {}".format, row, names))
            for row in (*zip(*values, strict=True), ["null"] * len(names))
        )
        stats = statistics(query, ", ".join(map("{} {}".format, names, types)))
        assert stats["numRecords"] == 3
        assert stats["nullCount"] == dict.fromkeys(names, 1)
        assert stats["minValues"] == dict(zip(names, minima, strict=True))
        assert stats["maxValues"] == dict(zip(names, maxima, strict=True))

    def test_not_of_types_without(self, statistics):
        stats = statistics(
            "SELECT true AS b, X'00' AS x, array(1) AS a, map('a', 1) AS m",
            "b boolean, x binary, a array<int>, m map<string,int>",
        )
        assert all(bounds(stats, column) == (None, None) for column in "bxam")
        assert stats["numRecords"] == 1

    def test_not_of_a_column_of_nulls(self, statistics):
        stats = statistics("SELECT CAST(null AS int) AS a", "a int")
        assert bounds(stats) == (None, None)
        assert stats["nullCount"] == {"a": 1}

    @pytest.mark.parametrize("column", ["float", "double"])
    def test_not_of_a_column_with_nan(self, statistics, column):
        stats = statistics(
            f"SELECT CAST(x AS {column}) AS a FROM VALUES ('1'), ('NaN'), ('2') AS t(x)",
            f"a {column}",
        )
        assert bounds(stats) == (None, None)
        assert stats["nullCount"] == {"a": 0}

    def test_not_of_years_that_python_has_no_dates_for(self, statistics):
        stats = statistics("SELECT DATE'+12345-01-01' AS a", "a date")
        assert bounds(stats) == (None, None)

    def test_not_of_days_that_the_session_writes_by_another_calendar(self, session, statistics):
        session.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY")
        stats = statistics(
            "SELECT DATE'1066-10-14' AS a, TIMESTAMP'1066-10-14 12:00:00' AS t, 1 AS b",
            "a date, t timestamp, b int",
        )
        assert bounds(stats) == bounds(stats, "t") == (None, None)
        assert bounds(stats, "b") == (1, 1)
        assert stats["nullCount"] == {"a": 0, "t": 0, "b": 0}

    @pytest.mark.parametrize(
        ("metadata", "are_bounded"),
        [
            ({"org.apache.spark.version": "2.4.6"}, False),
            ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}, False),
            ({}, False),
            ({"org.apache.spark.version": "3.0.0"}, True),
            ({"org.apache.spark.version": "10.0.0"}, True),
        ],
    )
    def test_not_of_early_days_whose_calendar_is_not_known(self, metadata, are_bounded):
        """Spark before its release 3 wrote Julian days, which it reads as such."""

        def stats(day: date) -> dict:
            at = datetime(day.year, day.month, day.day, tzinfo=UTC)
            table = pa.table({"a": pa.array([day]), "t": pa.array([at], pa.timestamp("us", "UTC"))})
            file = io.BytesIO()
            pq.write_table(table.replace_schema_metadata(metadata), file)
            columns = FooterColumns.of(layout_of("a date, t timestamp"))
            return json.loads(statistics_of(pq.read_metadata(file), columns))

        early, late = stats(date(1000, 1, 1)), stats(date(1900, 1, 1))
        assert (bounds(early) != (None, None)) is are_bounded
        assert (bounds(early, "t") != (None, None)) is are_bounded
        assert bounds(late) == ("1900-01-01", "1900-01-01")
        assert bounds(late, "t")[0].startswith("1900-01-01T00:00:00")

    def test_long_strings_are_cut_so_that_they_still_bound(self, statistics):
        stats = statistics("SELECT repeat('ab', 500) AS a", "a string")
        minimum, maximum = bounds(stats)
        assert minimum == "ab" * 16
        assert len(maximum) <= 64
        assert minimum < "ab" * 500 < maximum

    def test_not_where_the_footer_leaves_them_out(self, statistics):
        # Spark's writer gives no statistics of a value this long, not even a null count.
        stats = statistics("SELECT repeat('ab', 5000) AS a", "a string")
        assert bounds(stats) == (None, None)
        assert stats["nullCount"] == {}

    def test_of_fields_of_structs_in_structs(self, statistics):
        stats = statistics(
            "SELECT named_struct('x', named_struct('y', 1), 'w', array(1), 'z', 'q') AS a, 5 AS b "
            "UNION ALL SELECT null, 6",
            "a struct<x:struct<y:int>,w:array<int>,z:string>, b int",
        )
        assert stats["minValues"] == {"a": {"x": {"y": 1}, "z": "q"}, "b": 5}
        assert stats["maxValues"] == {"a": {"x": {"y": 1}, "z": "q"}, "b": 6}
        assert stats["nullCount"] == {"a": {"x": {"y": 1}, "z": 1}, "b": 0}

    def test_a_dot_in_a_name_is_no_struct(self, statistics):
        stats = statistics(
            "SELECT named_struct('b', 1) AS a, 2 AS `a.b`", "a struct<b:int>, `a.b` int"
        )
        assert stats["minValues"] == {"a": {"b": 1}, "a.b": 2}


class TestColumns:
    def test_the_first_32_leaves_have_them_arrays_and_maps_counted(self, statistics):
        names = [f"c{i}" for i in range(35)]
        values = ", ".join(f"{i} AS {name}" for i, name in enumerate(names))
        columns = ", ".join(f"{name} int" for name in names)
        stats = statistics(f"SELECT array(1) AS x, {values}", f"x array<int>, {columns}")
        assert list(stats["minValues"]) == names[:31]

    def test_partition_columns_are_not_among_them(self, statistics):
        stats = statistics("SELECT 1 AS p, 2 AS a", "p int, a int", partition_by=("p",))
        assert stats["minValues"] == {"a": 2}

    @pytest.mark.parametrize(
        ("properties", "found"),
        [
            ({"delta.dataSkippingNumIndexedCols": "1"}, {"a": 1}),
            ({"delta.dataSkippingNumIndexedCols": "0"}, {}),
            ({"delta.dataSkippingStatsColumns": "B"}, {"b": 2}),
        ],
    )
    def test_the_table_may_say_which(self, statistics, properties, found):
        stats = statistics("SELECT 1 AS a, 2 AS b", "a int, b int", properties=properties)
        assert stats["minValues"] == found


class TestOtherWriters:
    def test_row_groups_are_put_together(self, tmp_path):
        columns = FooterColumns.of(layout_of("a int, s string"))
        rows = pa.table(
            {"a": pa.array([None, None, 5, -1, 3, None], pa.int32()), "s": list("xyabca")}
        )
        pq.write_table(rows, tmp_path / "f", row_group_size=2)
        stats = json.loads(statistics_of(pq.read_metadata(tmp_path / "f"), columns))
        assert bounds(stats) == (-1, 5)
        assert bounds(stats, "s") == ("a", "y")
        assert stats["nullCount"] == {"a": 3, "s": 0}

    def test_one_row_group_without_bounds_takes_them_from_all(self, tmp_path):
        columns = FooterColumns.of(layout_of("s string"))
        writer = pq.ParquetWriter(tmp_path / "f", pa.schema({"s": pa.string()}))
        with writer:
            writer.write_table(pa.table({"s": ["a"]}))
            writer.write_table(pa.table({"s": [None]}, schema=pa.schema({"s": pa.string()})))
        assert bounds(
            json.loads(statistics_of(pq.read_metadata(tmp_path / "f"), columns)), "s"
        ) == (
            "a",
            "a",
        )
        pq.write_table(pa.table({"s": ["a"]}), tmp_path / "g", write_statistics=False)
        stats = json.loads(statistics_of(pq.read_metadata(tmp_path / "g"), columns))
        assert bounds(stats, "s") == (None, None)
        assert stats["nullCount"] == {}

    def test_what_is_known_otherwise_is_not_asked_of_the_footer(self, tmp_path):
        columns = FooterColumns.of(layout_of("a double, b double"))
        pq.write_table(pa.table({"a": [1.0, float("nan")], "b": [1.0, 2.0]}), tmp_path / "f")
        known = {("a",): ColumnStatistics(type=DOUBLE, null_count=0)}
        footer = pq.read_metadata(tmp_path / "f")
        stats = json.loads(statistics_of(footer, columns, known=known))
        assert bounds(stats) == (None, None)
        assert bounds(stats, "b") == (1.0, 2.0)
        assert stats["nullCount"] == {"a": 0, "b": 0}

    def test_timestamps_of_96_bits_have_no_bounds(self, tmp_path):
        columns = FooterColumns.of(layout_of("a timestamp"))
        rows = pa.table({"a": pa.array([0], pa.timestamp("us", "UTC"))})
        pq.write_table(rows, tmp_path / "f", use_deprecated_int96_timestamps=True)
        stats = json.loads(statistics_of(pq.read_metadata(tmp_path / "f"), columns))
        assert bounds(stats) == (None, None)

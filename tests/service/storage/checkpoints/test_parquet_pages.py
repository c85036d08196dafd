"""What the headers of Parquet pages say that rows decode to, held against what they become."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.service.storage.stepping import done
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.parquet_pages import Column, columns_of
from tidegate_service.storage.limits import CheckpointLimits

KIB = 1024
LONG = "x" * (64 * KIB)


def written(table: pa.Table, **options: object) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, **options)
    return file


def columns(file: io.BytesIO, group: int = 0) -> dict[str, Column]:
    file.seek(0)
    found = done(columns_of(file, pq.ParquetFile(file), group, ["a"]))
    return {each.path: each for each in found}


def column(values: pa.Array, **options: object) -> Column:
    (found,) = columns(written(pa.table({"a": values}), **options)).values()
    return found


class TestWhatRowsDecodeTo:
    def test_rows_that_share_a_value_of_a_dictionary(self):
        found = column(pa.array([LONG] * 100), compression="zstd")
        assert found.is_dictionary
        assert (found.values, found.shared, found.longest) == (100, 100, len(LONG))
        assert found.most_bytes(10) == 10 * len(LONG)
        assert found.most_bytes(1000) == 100 * len(LONG)

    def test_the_longest_value_is_no_other_ones(self):
        found = column(pa.array(["a", "abc", "ab"] * 10), compression="none")
        assert found.longest == 3

    @pytest.mark.parametrize("version", ["1.0", "2.0"])
    @pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli"])
    def test_values_that_are_their_own(self, version, codec):
        values = [f"{number:05}" * 20 for number in range(200)]
        found = column(
            pa.array(values),
            use_dictionary=False,
            compression=codec,
            data_page_version=version,
            data_page_size=KIB,
            write_batch_size=10,
        )
        assert not found.is_dictionary
        assert len(found.pages) > 5
        assert sum(count for count, _ in found.pages) == 200
        # Each with its length before it.
        assert sum(size for _, size in found.pages) >= 200 * 104
        assert 10 * 100 <= found.most_bytes(10) < 200 * 104

    def test_values_that_begin_with_the_one_before(self):
        found = column(
            pa.array([LONG + str(number) for number in range(50)]),
            use_dictionary=False,
            column_encoding="DELTA_BYTE_ARRAY",
            compression="none",
        )
        assert found.shared == 50
        assert found.most_bytes(50) >= 50 * len(LONG)

    def test_rows_at_the_end_of_a_page_and_at_the_begin_of_the_next(self):
        found = column(
            pa.array(["a", "b", LONG, LONG + "c", "d", "e"]),
            use_dictionary=False,
            compression="none",
            data_page_size=1,
            write_batch_size=3,
        )
        assert [count for count, _ in found.pages] == [3, 3]
        assert found.most_bytes(2) > 2 * len(LONG)

    @pytest.mark.parametrize(
        ("kind", "width"),
        [(pa.bool_(), 1), (pa.int32(), 4), (pa.int64(), 8), (pa.float64(), 8)],
        ids=str,
    )
    def test_numbers(self, kind, width):
        found = column(pa.array([1] * 30, pa.int64()).cast(kind))
        assert found.most_bytes(7) == 7 * width

    def test_bytes_of_a_fixed_length(self):
        assert column(pa.array([b"a" * 20] * 5, pa.binary(20))).most_bytes(3) == 60

    def test_a_row_of_a_list_may_have_all_its_values(self):
        lists = pa.array([["a" * 100] * 40, ["b" * 100]], pa.list_(pa.string()))
        found = column(lists)
        assert found.repetition == 1
        assert found.most_bytes(1) >= 41 * 100

    def test_each_row_group_is_its_own(self):
        file = written(pa.table({"a": ["a" * 10] * 5 + ["b" * 1000] * 5}), row_group_size=5)
        assert columns(file, 0)["a"].longest == 10
        assert columns(file, 1)["a"].longest == 1000

    @settings(max_examples=60, deadline=None)
    @given(
        values=st.lists(
            st.one_of(st.none(), st.text(st.characters(codec="ascii"), max_size=300)), min_size=1
        ),
        dictionary=st.booleans(),
        version=st.sampled_from(["1.0", "2.0"]),
        rows=st.integers(1, 50),
    )
    def test_no_rows_are_longer(self, values, dictionary, version, rows):
        found = column(
            pa.array(values, pa.string()),
            use_dictionary=dictionary,
            data_page_version=version,
            data_page_size=100,
            write_batch_size=3,
            dictionary_pagesize_limit=500,
        )
        lengths = [len(value or "") for value in values]
        longest = max(sum(lengths[at : at + rows]) for at in range(len(lengths)))
        assert found.values == len(values)
        assert found.most_bytes(rows) >= longest


class TestWhatIsRefused:
    def test_a_page_beyond_the_bound(self):
        file = written(pa.table({"a": [LONG]}), compression="zstd")
        few = CheckpointLimits(page_bytes=10 * KIB)
        with pytest.raises(TooLarge, match=r"a page of a has \d+ bytes; at most 10240"):
            done(columns_of(file, pq.ParquetFile(file), 0, ["a"], few))

    @pytest.mark.parametrize("change", [lambda raw: b"\xff" * len(raw), lambda raw: b""])
    def test_headers_that_are_none(self, change: Callable[[bytes], bytes]):
        raw = written(pa.table({"a": [LONG] * 3}), compression="none").getvalue()
        parquet = pq.ParquetFile(io.BytesIO(raw))
        end = parquet.metadata.row_group(0).column(0).total_compressed_size
        broken = io.BytesIO(raw[:4] + change(raw[4 : 4 + end]))
        with pytest.raises(pa.ArrowException):
            done(columns_of(broken, parquet, 0, ["a"]))

    @settings(max_examples=400, deadline=None)
    @given(st.lists(st.tuples(st.integers(4, 120), st.integers(0, 255)), min_size=1, max_size=4))
    @example([(4, 0x18)])
    @example([(4, 0x1C)])
    @example([(6, 0x18)])
    @example([(6, 0x1C)])
    def test_any_other_bytes_are_read_or_refused(self, changes):
        raw = bytearray(written(pa.table({"a": ["abc"] * 30}), compression="none").getvalue())
        parquet = pq.ParquetFile(io.BytesIO(bytes(raw)))
        for at, byte in changes:
            raw[at] = byte
        try:
            found = done(columns_of(io.BytesIO(bytes(raw)), parquet, 0, ["a"]))
        except (TooLarge, pa.ArrowException):
            return
        assert [each.path for each in found] == ["a"]


def test_columns_that_lie_in_wanted_ones():
    table = pa.table({"add": [{"path": "a", "stats": "b"}], "added": ["c"], "txn": [{"v": 1}]})
    file = written(table)

    def within(*wanted: str) -> list[tuple[str, str]]:
        found = done(columns_of(file, pq.ParquetFile(file), 0, wanted))
        return [(each.path, each.within) for each in found]

    assert within("add") == [("add.path", "add"), ("add.stats", "add")]
    assert within("add.stats", "txn") == [("add.stats", "add.stats"), ("txn.v", "txn")]

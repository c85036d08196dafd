"""Checkpoints of many columns, long names and headers of many values."""

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.service.storage.stepping import done
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.checkpoints.apart.places import Places
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.checkpoints.footer import check_footer
from tidegate_service.storage.checkpoints.reading import checkpoint_actions
from tidegate_service.storage.checkpoints.thrift import Thrift
from tidegate_service.storage.limits import CheckpointLimits


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def number(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def element(name: str, children: int = 0) -> bytes:
    """One of a schema: a group, or an optional column of numbers."""
    kind = b"" if children else b"\x15" + number(1)
    named = varint(len(name)) + name.encode()
    after = 3 if children else 2
    return (
        kind
        + bytes([after << 4 | 5])
        + number(1)
        + b"\x18"
        + named
        + (b"\x15" + number(children) if children else b"")
        + b"\0"
    )


def schema(*elements: bytes) -> bytes:
    return b"\xfc" + varint(len(elements)) + b"".join(elements)


def file(*fields: bytes) -> io.BytesIO:
    """One without row groups, of these fields of its footer behind the version."""
    footer = b"\x15" + number(1) + b"".join(fields) + b"\0"
    return io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


SMALL = schema(element("root", 1), element("add", 1), element("path"))
REST = b"\x16" + number(0) + b"\x19\x0c"
"""No rows, no row groups."""


def wide(columns: int) -> bytes:
    names = (element(f"c{each}") for each in range(columns))
    return schema(element("root", 1), element("add", columns), *names)


class TestFooters:
    def test_a_usual_one_is_read_as_arrow_does(self):
        usual = file(b"\x19" + SMALL, REST)
        done(check_footer(usual))
        assert pq.ParquetFile(usual).schema_arrow.names == ["add"]

    def test_so_many_columns_and_no_more(self):
        done(check_footer(file(b"\x19" + wide(50), REST), most_columns=50))
        with pytest.raises(TooLarge, match="it has more than 50 columns"):
            done(check_footer(file(b"\x19" + wide(51), REST), most_columns=50))

    def test_names_in_names_that_are_long(self):
        """Each column's path has them all: ten names of a kilobyte in this place are ten
        megabytes where ten thousand columns are in them."""
        names = [element("x" * 500, 1) for _ in range(9)]
        with pytest.raises(TooLarge, match=r"a column's path has \d+ bytes; at most 4096"):
            done(check_footer(file(b"\x19" + schema(element("root", 1), *names, element("a")))))

    def test_names_beside_each_other_are_not_in_each_other(self):
        names = [element("x" * 1000) for _ in range(9)]
        done(check_footer(file(b"\x19" + schema(element("root", 9), *names), REST)))

    def test_a_second_schema_goes_before_the_first(self):
        long = schema(element("root", 1), element("x" * 5000))
        two = file(b"\x19" + SMALL, b"\x09" + number(2) + long, b"\x16" + number(0) + b"\x19\x0c")
        assert pq.ParquetFile(two).schema_arrow.names == ["x" * 5000]
        with pytest.raises(TooLarge, match="a column's path"):
            done(check_footer(two))

    @pytest.mark.parametrize(
        "fields",
        [
            b"\x09" + number(2 + (1 << 16)) + SMALL,
            b"\x19" + schema(element("root", 1 << 32)),
            b"\x19" + schema(element("root", -(1 << 32) + 1), element("a")),
            b"\x19" + b"\xf8" + varint(1) + varint(1) + b"a",
            b"\x1d",
            b"\x1c" * 50,
        ],
        ids=["field", "group", "negative", "texts", "kind", "end"],
    )
    def test_what_is_read_in_two_ways_is_refused(self, fields):
        with pytest.raises(pa.ArrowInvalid):
            done(check_footer(file(fields)))


@pytest.mark.parametrize(
    "header",
    [
        b"\x19\xf5" + varint(300) + b"\0" * 300 + b"\0",
        b"\x15\x00" * 300 + b"\0",
        b"\x19" * 300 + b"\0",
    ],
    ids=["list", "fields", "lists in lists"],
)
def test_a_header_of_many_values_is_none(header):
    with pytest.raises(pa.ArrowInvalid, match="more than 256 values"):
        Thrift(header).read_struct()


class AtOnce:
    """A `Share` whose steps are done at once."""

    who = None

    async def run_rested(self, step: Callable[[], object]) -> object:
        return step()


@pytest.mark.anyio
async def test_a_checkpoint_of_too_many_columns():
    budget = Budget(CheckpointLimits(columns=50))
    raw = file(b"\x19" + wide(51), REST)
    read = checkpoint_actions(lambda _: raw, "a.parquet", budget, AtOnce(), Places(1))
    with pytest.raises(UnreadableFile, match=r"'a\.parquet' is too large to be read: it has more"):
        async for _ in read:
            pass

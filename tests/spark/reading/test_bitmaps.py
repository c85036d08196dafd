"""Deletion vectors as bytes: the protocol's own examples, and what is none."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from tidegate.spark import UnsupportedTable
from tidegate.spark.deletion_vectors.bitmaps import (
    decode_z85,
    encode_z85,
    format_bitmap,
    parse_bitmap,
)
from tidegate.spark.deletion_vectors.files import read_vector, read_vectors, write_vectors
from tidegate.spark.storage.arrow import ArrowStore
from tidegate_protocol.log.actions import DeletionVector

EXAMPLE = DeletionVector(
    storage_type="i",
    path_or_inline_dv="wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    size_in_bytes=40,
    cardinality=6,
)
"""PROTOCOL.md, "Deletion Vector Descriptor Schema"."""


@pytest.fixture
def store(tmp_path):
    return ArrowStore(f"file://{tmp_path}")


def test_the_protocols_example_is_read(store):
    assert list(read_vector(EXAMPLE, store)) == [3, 4, 7, 11, 18, 29]


def test_the_protocols_path_is_found(tmp_path, store):
    (vector,) = write_vectors([BitMap64([1])], store)
    (written,) = tmp_path.iterdir()
    (tmp_path / "ab").mkdir()
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    written.rename(tmp_path / "ab" / name)
    known = DeletionVector(
        storage_type="u",
        path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^",
        offset=vector.offset,
        size_in_bytes=vector.size_in_bytes,
        cardinality=1,
    )
    assert list(read_vector(known, store)) == [1]


@given(st.sets(st.one_of(st.integers(0, 300), st.integers(0, 2**45)), min_size=1))
def test_what_is_written_is_read(positions):
    data = format_bitmap(BitMap64(positions))
    assert set(parse_bitmap(data, cardinality=len(positions), name="it")) == positions
    assert decode_z85(encode_z85(data))[: len(data)] == data


def test_both_byte_orders_of_the_older_form_are_read():
    large = BitMap64([1, 2**32 + 5, 2**33]).serialize()
    bitmaps = []
    for positions in ([1], [5], [0]):
        # Behind the number of bitmaps and the key of the only one.
        bitmaps.append(BitMap64(positions).serialize()[12:])
    for order in "<>":
        body = b"".join(struct.pack(f"{order}i", len(each)) + each for each in bitmaps)
        data = struct.pack(f"{order}ii", 1681511376, 3) + body
        assert parse_bitmap(data, cardinality=3, name="it").serialize() == large


def test_many_vectors_share_a_file(tmp_path, store):
    sets = [BitMap64([1, 2]), BitMap64(range(100_000)), BitMap64([2**40])]
    vectors = write_vectors(sets, store, folder="some folder")
    assert [path.parent.name for path in tmp_path.rglob("*.bin")] == ["some folder"]
    assert vectors[0].offset == 1
    assert read_vectors(vectors, store) == sets


def test_no_vectors_are_no_file(tmp_path, store):
    assert write_vectors([], store) == []
    with pytest.raises(ValueError, match="expected deleted rows"):
        write_vectors([BitMap64([1]), BitMap64()], store)
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("place", [1, 4, 5, 9, 20, -1])
def test_a_changed_byte_is_noticed(tmp_path, store, place):
    (vector,) = write_vectors([BitMap64([1, 2, 3, 70_000])], store)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(UnsupportedTable, match="checksum"):
        read_vector(vector, store)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cardinality": 7}, "expected 7 rows, found 6"),
        ({"size_in_bytes": 12}, "no roaring bitmap"),
        ({"size_in_bytes": 2}, "no roaring bitmap"),
        ({"path_or_inline_dv": "wi5b="}, "no roaring bitmap"),
        ({"path_or_inline_dv": "0" * 50}, "expected the magic number 1681511377, found 0"),
        ({"path_or_inline_dv": "wi5b"}, "groups of five"),
        ({"storage_type": "u"}, "an offset"),
        ({"storage_type": "x", "offset": 1}, "storage type among"),
        ({"storage_type": "u", "offset": 1, "path_or_inline_dv": "short"}, "UUID|bytes|16"),
    ],
)
def test_what_is_no_vector_is_said(store, changes, message):
    fields = {name: getattr(EXAMPLE, name) for name in EXAMPLE.__struct_fields__} | changes
    with pytest.raises(UnsupportedTable, match=message):
        read_vector(DeletionVector(**fields), store)

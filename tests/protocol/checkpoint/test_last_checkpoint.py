"""`_last_checkpoint` and its checksum."""

import json

import pytest

from tidegate_protocol.checkpoint.last_checkpoint import (
    MOST_BYTES,
    LastCheckpoint,
    V2Files,
    canonical,
    checksum,
    encode,
    pointer_of,
    version_of,
)

# The example of PROTOCOL.md, "How URL encoding works" and "JSON checksum".
EXAMPLE = {
    "k0": "'v 0'",
    "checksum": "adsaskfljadfkjadfkj",
    "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
}
CANONICAL = (
    '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
    '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6",'
    '"k1"+"k3"+2+"k5"+2="v7"'
)


def test_the_protocols_example():
    without = {name: value for name, value in EXAMPLE.items() if name != "checksum"}
    assert canonical(without) == CANONICAL
    assert checksum(EXAMPLE) == checksum(without) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": True, "a": None, "c": 3.14}, '"a"=null,"b"=true,"c"=3.14'),
        ({"é": "https://delta.io"}, '"%C3%A9"="https%3A%2F%2Fdelta.io"'),
        ({"a": "-._~"}, '"a"="-._~"'),
        ({}, ""),
        (42, "42"),
    ],
)
def test_canonical_forms(value, expected):
    assert canonical(value) == expected


def test_of_one_file():
    written = json.loads(encode(LastCheckpoint(version=7, num_actions=9, num_adds=5, size=100)))
    assert written.pop("checksum") == checksum(written)
    assert written == {"version": 7, "size": 9, "sizeInBytes": 100, "numOfAddFiles": 5}


def test_of_parts_and_of_v2():
    parts = LastCheckpoint(version=7, num_actions=9, num_adds=5, size=100, parts=3)
    assert json.loads(encode(parts))["parts"] == 3
    main = V2Files(path="7.checkpoint.u.parquet", size=10, modified_ms=5)
    v2 = LastCheckpoint(version=7, num_actions=9, num_adds=5, size=100, v2=main)
    written = json.loads(encode(v2))
    assert written["v2Checkpoint"] == {
        "path": "7.checkpoint.u.parquet",
        "sizeInBytes": 10,
        "modificationTime": 5,
    }
    assert written["checksum"] == checksum(written)
    assert version_of(encode(v2)) == 7


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version":"7"}', b"\xff", b"[7]"])
def test_what_points_nowhere(content):
    assert version_of(content) is None


@pytest.mark.parametrize(
    ("told", "size"),
    [("5", 5), ("null", None), ("-1", None), ("1.5", None), ('"5"', None), ("9" * 400, None)],
)
def test_the_size_that_a_writer_says(told, size):
    pointer = pointer_of(f'{{"version":3,"sizeInBytes":{told}}}'.encode())
    assert pointer is not None
    assert (pointer.version, pointer.size) == (3, size)


@pytest.mark.parametrize("depth", [10_000, 100_000])
def test_what_is_deep_points_nowhere(depth):
    assert pointer_of(b'{"version":3,"x":' + b"[" * depth + b"]" * depth + b"}") is None


def test_what_is_long_is_not_looked_into():
    for size in (MOST_BYTES - 100, MOST_BYTES):
        found = pointer_of(b'{"version":3,"sizeInBytes":[' + b" " * size + b"]}")
        assert (found is not None) == (size < MOST_BYTES)

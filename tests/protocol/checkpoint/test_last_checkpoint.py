"""`_last_checkpoint` and its checksum."""

import json

import pytest

from tidegate_protocol.checkpoint.last_checkpoint import (
    LastCheckpoint,
    V2Files,
    canonical,
    checksum,
    encode,
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

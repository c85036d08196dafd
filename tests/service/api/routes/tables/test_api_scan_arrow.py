"""Scans as Arrow streams: what they hold, and how a broken one is told from a whole one."""

import json

import msgspec
import pyarrow as pa
import pytest

from tests.builders.flights import add, proposal
from tidegate_protocol.log.codec import decode
from tidegate_service.api.answers import arrow
from tidegate_service.api.answers.types import ScanHead
from tidegate_service.core.sharing.pools import Pool

ARROW = {"Accept": arrow.MEDIA_TYPE}
END = b"\xff\xff\xff\xff\0\0\0\0"

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 4}
FULL = {
    "path": "day=1/%C3%BC.parquet",
    "partitionValues": {"day": None, "ü": "\u2028"},
    "size": 2**53 + 1,
    "modificationTime": 1700000000123,
    "dataChange": False,
    "stats": '{"numRecords":3}',
    "tags": {"a": None, "b": ""},
    "deletionVector": {**VECTOR, "offset": 1, "cardinality": 2},
    "baseRowId": 7,
    "defaultRowCommitVersion": 3,
    "clusteringProvider": "liquid",
    "unheardOf": [1.50],
}
PLAIN = {
    "path": "b",
    "partitionValues": {},
    "size": 0,
    "modificationTime": 0,
    "dataChange": True,
}
HEAD = ScanHead(
    table="a.b.c",
    table_id="id",
    location="file:///x",
    version=7,
    timestamp=5,
    protocol=msgspec.Raw(b'{"minReaderVersion":1}'),
    metadata=msgspec.Raw(b'{"id":"x"}'),
)


def lines(*bodies):
    return [json.dumps({"add": body}, ensure_ascii=False).encode() for body in bodies]


async def stream(*batches):
    async def files():
        for batch in batches:
            yield batch

    return [part async for part in arrow.as_arrow(HEAD, files(), Pool("scans", 1).of("anybody"))]


@pytest.mark.anyio
async def test_every_field_is_a_column():
    given = lines(FULL, PLAIN)
    table = pa.ipc.open_stream(b"".join(await stream(given))).read_all()
    full, plain = table.to_pylist()
    assert full == {
        "path": FULL["path"],
        "partition_values": [("day", None), ("ü", "\u2028")],
        "size": 2**53 + 1,
        "modification_time": 1700000000123,
        "stats": '{"numRecords":3}',
        "deletion_vector": {
            "storage_type": "u",
            "path_or_inline_dv": VECTOR["pathOrInlineDv"],
            "offset": 1,
            "size_in_bytes": 4,
            "cardinality": 2,
        },
        "base_row_id": 7,
        "default_row_commit_version": 3,
        "tags": [("a", None), ("b", "")],
        "action": given[0],
    }
    assert plain == {
        **dict.fromkeys(full),
        "path": "b",
        "partition_values": [],
        "size": 0,
        "modification_time": 0,
        "action": given[1],
    }


@pytest.mark.anyio
async def test_only_a_whole_stream_has_its_end():
    parts = await stream(lines(FULL), lines(PLAIN, PLAIN))
    assert [END in part[-8:] for part in parts] == [False, False, False, True]
    assert [batch.num_rows for batch in pa.ipc.open_stream(b"".join(parts))] == [1, 2]


@pytest.mark.anyio
async def test_one_that_breaks_off_has_no_end():
    async def files():
        yield lines(PLAIN)
        raise ConnectionError

    sent = []

    async def send():
        async for part in arrow.as_arrow(HEAD, files(), Pool("scans", 1).of("anybody")):
            sent.append(part)

    with pytest.raises(ConnectionError):
        await send()
    assert END not in b"".join(sent)[-8:]


def read(answer):
    assert answer.status_code == 200
    assert answer.headers["content-type"] == arrow.MEDIA_TYPE
    return pa.ipc.open_stream(answer.content).read_all()


def test_it_says_the_same_as_json(shared_api, flights):
    months = [add(f"month={month}/a.parquet", str(month)) for month in (4, 5, 6)]
    shared_api.post(f"/tables/{flights}/commits", json=proposal(*months)).raise_for_status()
    for body in ({}, {"predicates": ["month = 5"]}, {"predicates": ["false"]}, {"version": 0}):
        expected = shared_api.post(f"/tables/{flights}/scan", json=body).json()
        table = read(shared_api.post(f"/tables/{flights}/scan", json=body, headers=ARROW))
        assert [json.loads(line) for line in table["action"].to_pylist()] == expected["files"]
        adds = [decode(line) for line in table["action"].to_pylist()]
        assert table["path"].to_pylist() == [one.path for one in adds]
        assert table["partition_values"].to_pylist() == [
            list(one.partition_values.items()) for one in adds
        ]
        head = {name.decode(): text.decode() for name, text in table.schema.metadata.items()}
        assert head["version"] == str(expected["version"])
        assert json.loads(head["metadata"]) == expected["metadata"]
        assert head["location"] == expected["location"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{arrow.MEDIA_TYPE}, application/x-ndjson", arrow.MEDIA_TYPE),
        ("application/x-ndjson, Application/Vnd.Apache.Arrow.Stream", "application/x-ndjson"),
        ("text/html, application/vnd.apache.arrow.stream;q=0.5", arrow.MEDIA_TYPE),
        ("application/vnd.apache.arrow.file", "application/json"),
    ],
)
def test_the_first_form_that_is_there(shared_api, flights, accept, kind):
    answer = shared_api.post(f"/tables/{flights}/scan", json={}, headers={"Accept": accept})
    assert answer.headers["content-type"] == kind


def test_a_problem_is_a_problem(shared_api, flights):
    answer = shared_api.post(f"/tables/{flights}/scan", json={"version": 99}, headers=ARROW)
    assert (answer.status_code, answer.json()["code"]) == (404, "version-not-found")

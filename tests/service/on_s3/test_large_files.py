"""Large commit files on S3: they come in pieces, and one beyond the bound does not come."""

import hashlib
import json

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.servers.store_proxy import StoreFault, StoreProxy
from tidegate_protocol.log.content import LogFile
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.log.files.log_file import LARGE_BYTES, OversizedFile, SpooledFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


def content_of(size: int) -> bytes:
    """So many bytes of lines or a few more."""
    lines, length = [], 0
    while length < size:
        add = {"path": f"a/{len(lines):09}", "partitionValues": {}, "size": 1}
        add |= {"modificationTime": 1, "dataChange": True, "tags": {"a": "b" * 500}}
        lines.append(json.dumps({"add": add}).encode() + b"\n")
        length += len(lines[-1])
    return b"".join(lines)


def put(server: S3Server, prefix: str, content: bytes) -> None:
    key = prefix.removeprefix("s3://").partition("/")[2]
    store = S3Store(server.bucket, config=server.storage_options)
    obstore.put(store, f"{key}/t/_delta_log/{1:020}.json", content)


async def read(proxy: StoreProxy, prefix: str, **bounds: int) -> bytes | LogFile | None:
    storage = ObjectStorage(prefix, options=proxy.storage_options, limits=StorageLimits(**bounds))
    return await storage.log(f"{prefix}/t").read(1)


async def test_a_small_one_is_one_request(store_proxy, s3_server, s3_prefix):
    content = content_of(LARGE_BYTES - MIB)
    put(s3_server, s3_prefix, content)
    assert await read(store_proxy, s3_prefix) == content
    assert store_proxy.count("GET") == 1


async def test_a_large_one_comes_in_pieces(store_proxy, s3_server, s3_prefix):
    content = content_of(LARGE_BYTES + 8 * MIB)
    put(s3_server, s3_prefix, content)
    found = await read(store_proxy, s3_prefix)
    assert isinstance(found, SpooledFile)
    assert found.stored_bytes < MIB
    assert b"".join(found.pieces()) == content
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert len(found.actions()) == content.count(b"\n")
    assert store_proxy.count("GET") > len(content) // (2 * MIB)


async def test_one_beyond_the_bound_is_asked_for_its_size_alone(store_proxy, s3_server, s3_prefix):
    content = content_of(LARGE_BYTES + 8 * MIB)
    put(s3_server, s3_prefix, content)
    found = await read(store_proxy, s3_prefix, commit_bytes=2 * LARGE_BYTES)
    assert isinstance(found, OversizedFile)
    assert len(found) == len(content)
    assert f"it has {len(content)} bytes" in found.why
    assert store_proxy.count("GET") == 1


async def test_one_that_is_replaced_meanwhile_is_not_two_halves(store_proxy, s3_server, s3_prefix):
    """A piece of another file fails the read; nobody may take it for a commit."""
    content = content_of(LARGE_BYTES + 2 * MIB)
    put(s3_server, s3_prefix, content)
    storage = ObjectStorage(s3_prefix, options=store_proxy.storage_options)
    file = storage.log(f"{s3_prefix}/t").open_file(f"{1:020}.json")
    assert file is not None
    with file:
        assert file.read(2 * MIB) == content[: 2 * MIB]
        put(s3_server, s3_prefix, content[::-1])
        with pytest.raises(StorageUnavailable):
            file.read()


async def test_a_piece_that_is_refused_for_a_while_is_asked_for_again(
    store_proxy, s3_server, s3_prefix
):
    content = content_of(LARGE_BYTES + 2 * MIB)
    put(s3_server, s3_prefix, content)
    # The first request is the whole file's.
    store_proxy.script(StoreFault.SLOW_DOWN, StoreFault.CUT, method="GET")
    found = await read(store_proxy, s3_prefix)
    assert isinstance(found, SpooledFile)
    assert found.sha256 == hashlib.sha256(content).hexdigest()

"""Files of a log opened for random access, local and on S3: for checkpoints of any size."""

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.servers.store_proxy import StoreProxy
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.object_storage import ObjectLog

pytestmark = pytest.mark.anyio

CONTENT = random.Random(4).randbytes(20 << 20)


@pytest.fixture(params=["local", "s3"])
def log(request, tmp_path) -> ObjectLog:
    if request.param == "local":
        return ObjectStorage(f"file://{tmp_path}").log(f"file://{tmp_path}/t")
    server, prefix = request.getfixturevalue("s3_server"), request.getfixturevalue("s3_prefix")
    return ObjectStorage(prefix, options=server.storage_options).log(f"{prefix}/t")


@pytest.fixture
async def version_0(log, anyio_backend):
    """The name of a file with `CONTENT`."""
    assert await log.put_if_absent(0, CONTENT) is PutResult.CREATED
    return commit_name(0)


async def test_every_position_can_be_read(log, version_0):
    positions = random.Random(5)
    expected = io.BytesIO(CONTENT)
    with log.open_file(version_0) as file:
        for _ in range(60):
            offset, size = positions.randrange(len(CONTENT)), positions.randrange(100_000)
            whence = positions.choice([io.SEEK_SET, io.SEEK_END, io.SEEK_CUR])
            if whence == io.SEEK_END:
                offset = -offset
            elif whence == io.SEEK_CUR:
                offset = -min(expected.tell(), offset)
            assert file.seek(offset, whence) == expected.seek(offset, whence)
            assert file.read(size) == expected.read(size)
            assert file.tell() == expected.tell()


async def test_it_ends_where_it_ends(log, version_0):
    with log.open_file(version_0) as file:
        assert file.read() == CONTENT
        assert file.read(1) == b""
        file.seek(-3, io.SEEK_END)
        assert file.read(10) == CONTENT[-3:]
        file.seek(len(CONTENT) + 7)
        assert file.read(1) == b""
        with pytest.raises(OSError, match="Invalid argument"):
            file.seek(-1)


async def test_an_empty_file(log):
    await log.put_if_absent(0, b"")
    with log.open_file(commit_name(0)) as file:
        assert file.read() == b""


async def test_lines(log):
    lines = [b"%d" % number * 1000 + b"\n" for number in range(3000)]
    await log.put_if_absent(0, b"".join(lines))
    with log.open_file(commit_name(0)) as file:
        assert list(file) == lines


async def test_parquet_is_read_by_the_row_group(log):
    table = pa.table({"number": range(200_000), "text": ["x" * 50] * 200_000})
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=20_000, compression="none", use_dictionary=False)
    await log.put_if_absent(0, written.getvalue())

    with log.open_file(commit_name(0)) as file, pq.ParquetFile(file) as parquet:
        group = parquet.read_row_group(7, columns=["number"])
        assert group.column("number").to_pylist() == list(range(140_000, 160_000))


async def test_what_is_not_there_is_none(log):
    assert log.open_file("_last_checkpoint") is None
    assert log.open_file("_sidecars/a.parquet") is None
    await log.put_if_absent(0, b"zero\n")
    assert log.open_file("_last_checkpoint") is None


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "/a", "_sidecars", "_sidecars/", "_sidecars/..", "_sidecars/a/b"]
)
async def test_nothing_else_than_a_file_of_the_log_is_opened(log, name):
    await log.put_if_absent(0, b"zero\n")
    with pytest.raises(UnreadableFile):
        log.open_file(name)


async def test_a_file_that_is_not_small_is_not_read_whole(tmp_path):
    few = StorageLimits(small_bytes=1000)
    log = ObjectStorage(tmp_path.as_uri(), limits=few).log(f"{tmp_path.as_uri()}/flights")
    await log.put_if_absent(0, b"x" * 1000)
    await log.put_if_absent(1, b"x" * 1001)

    assert await log.read_file(commit_name(0)) == b"x" * 1000
    with pytest.raises(UnreadableFile, match="more than 1000 bytes"):
        await log.read_file(commit_name(1))


async def test_no_more_is_fetched_than_is_asked_for(store_proxy: StoreProxy, s3_prefix):
    log = ObjectStorage(s3_prefix, options=store_proxy.storage_options).log(f"{s3_prefix}/t")
    await log.put_if_absent(0, CONTENT)
    before = store_proxy.sent_bytes

    with log.open_file(commit_name(0)) as file:
        file.seek(-8, io.SEEK_END)
        file.read(8)
        file.seek(10 << 20)
        file.read(100_000)

    assert store_proxy.sent_bytes - before <= 2 << 20


async def test_a_whole_file_is_fetched_in_few_requests(store_proxy: StoreProxy, s3_prefix):
    log = ObjectStorage(s3_prefix, options=store_proxy.storage_options).log(f"{s3_prefix}/t")
    await log.put_if_absent(0, CONTENT)

    with log.open_file(commit_name(0)) as file:
        assert file.read() == CONTENT

    assert store_proxy.count("GET") == 3

"""A real S3 server behind the `Storage` port: the shared contract, and what a start finds out."""

import obstore
import pytest
from obstore.store import S3Store

from demo.s3_server import S3Server
from tests.service.log.log_contract import LogContract
from tests.service.storage.local.test_storage_local import folder_of
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

SECRET = "correct-horse-battery"


@pytest.fixture
def storage(s3_server: S3Server, s3_prefix):
    return ObjectStorage(s3_prefix, options=s3_server.storage_options)


@pytest.fixture
def location(s3_prefix):
    return f"{s3_prefix}/main/air/flights"


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> S3Store:
    """The bucket as another writer sees it."""
    return S3Store(s3_server.bucket, config=s3_server.storage_options)


def key_of(location: str) -> str:
    return location.removeprefix("s3://").partition("/")[2]


class TestContract(LogContract):
    @pytest.fixture
    def plant(self, bucket):
        def plant(location, name, content):
            obstore.put(bucket, f"{key_of(location)}/_delta_log/{name}", content)

        return plant


class TestWhereTablesMayBe:
    @pytest.mark.parametrize(
        "tail", ["", "/", "/flights/", "/a/../b", "/a//b", "/a/_delta_log", "-sibling/flights"]
    )
    def test_a_location_outside_or_not_canonical_is_refused(self, storage, s3_prefix, tail):
        with pytest.raises(Refused) as refused:
            storage.log(f"{s3_prefix}{tail}")
        assert refused.value.code is Code.INVALID_LOCATION

    def test_so_is_another_bucket_or_scheme(self, storage, s3_prefix):
        for url in (
            s3_prefix.replace("tidegate", "other"),
            s3_prefix.replace("s3://", "s3a://"),
            s3_prefix.replace("s3://", "gs://"),
        ):
            with pytest.raises(Refused):
                storage.log(f"{url}/flights")

    async def test_a_bucket_itself_may_be_the_warehouse(self, s3_server, s3_prefix):
        storage = ObjectStorage("s3://tidegate", options=s3_server.storage_options)
        log = storage.log(f"{s3_prefix}/flights")

        await storage.probe()
        assert await log.put_if_absent(0, b"zero\n") is PutResult.CREATED
        assert await log.read(0) == b"zero\n"

    async def test_s3a_means_the_same_place(self, storage, s3_server, s3_prefix):
        other = ObjectStorage(
            s3_prefix.replace("s3://", "s3a://"), options=s3_server.storage_options
        )
        await other.log(f"{s3_prefix}/flights").put_if_absent(0, b"zero\n")

        assert await storage.log(f"{s3_prefix}/flights").read(0) == b"zero\n"

    async def test_local_folders_and_buckets_stand_side_by_side(
        self, s3_server, s3_prefix, tmp_path
    ):
        storage = ObjectStorage(
            f"file://{tmp_path}", [s3_prefix], options=s3_server.storage_options
        )
        await storage.probe()

        await storage.log(f"file://{tmp_path}/t").put_if_absent(0, b"here\n")
        await storage.log(f"{s3_prefix}/t").put_if_absent(0, b"there\n")

        assert await storage.log(f"file://{tmp_path}/t").read(0) == b"here\n"
        assert await storage.log(f"{s3_prefix}/t").read(0) == b"there\n"
        assert (folder_of(f"file://{tmp_path}/t") / "_delta_log").is_dir()


class TestStart:
    """What is wrong with the settings is found by the probe, which names the one to look at."""

    @pytest.fixture
    def probe_fails(self, s3_server, s3_prefix):
        async def probe_fails(url: str | None = None, **options: str | None) -> str:
            given = {**s3_server.storage_options, **options}
            storage = ObjectStorage(
                url or s3_prefix,
                options={key: value for key, value in given.items() if value is not None},
            )
            with pytest.raises(StorageUnavailable) as failed:
                await storage.probe()
            (note,) = failed.value.__notes__
            for shown in (failed.value.detail, note):
                assert SECRET not in shown
                assert s3_server.secret_key not in shown
            assert s3_server.endpoint not in failed.value.detail
            return f"{failed.value.detail}; {note}"

        return probe_fails

    async def test_a_probe_leaves_one_empty_object(self, storage, s3_prefix, bucket):
        await storage.probe()
        await storage.probe()

        found = [e for batch in obstore.list(bucket, key_of(s3_prefix)) for e in batch]
        assert [(e["path"], e["size"]) for e in found] == [
            (f"{key_of(s3_prefix)}/.tidegate-probe/put-if-absent", 0)
        ]

    async def test_a_bucket_that_is_not_there(self, probe_fails):
        message = await probe_fails(url="s3://another-bucket/lake")
        assert "NoSuchBucket" in message
        assert "no bucket another-bucket" in message
        assert "--warehouse" in message

    async def test_a_wrong_secret(self, probe_fails):
        message = await probe_fails(aws_secret_access_key=SECRET)
        assert "403 SignatureDoesNotMatch" in message
        assert "aws_secret_access_key" in message

    async def test_a_wrong_key(self, probe_fails):
        message = await probe_fails(aws_access_key_id=SECRET)
        assert "403 InvalidAccessKeyId" in message
        assert "aws_access_key_id" in message

    async def test_an_endpoint_where_nobody_listens(self, probe_fails, free_tcp_port):
        message = await probe_fails(aws_endpoint=f"http://127.0.0.1:{free_tcp_port}")
        assert "could not be reached" in message
        assert "aws_endpoint" in message

    async def test_an_endpoint_that_does_not_speak_tls(self, probe_fails, s3_server):
        message = await probe_fails(aws_endpoint=f"https://127.0.0.1:{s3_server.port}")
        assert "could not be reached" in message

    async def test_plain_http_that_was_not_allowed(self, probe_fails):
        message = await probe_fails(allow_http=None)
        assert "allow_http=true" in message

    async def test_a_prefix_that_was_only_allowed_is_not_used_until_it_is_probed(
        self, s3_server, s3_prefix, caplog
    ):
        """And keeps nobody from the warehouse: it may be taken away by whoever owns it."""
        place = "s3://another-bucket/lake"
        storage = ObjectStorage(s3_prefix, [place], options=s3_server.storage_options)
        await storage.probe()
        (told,) = [record for record in caplog.records if record.name == "tidegate.service"]
        assert told.place == place
        storage.log(f"{s3_prefix}/flights")
        with pytest.raises(StorageUnavailable, match=r"cannot be used yet: .*NoSuchBucket"):
            storage.log(f"{place}/flights")
        await storage.close()


class TestBucketThatIsGone:
    """A missing bucket is not an empty one: nothing may be concluded from it."""

    async def test_nothing_is_known_of_it(self, s3_server):
        storage = ObjectStorage("s3://gone-bucket/lake", options=s3_server.storage_options)
        log = storage.log("s3://gone-bucket/lake/flights")

        for call in (log.read(0), log.put_if_absent(0, b""), log.holds_anything()):
            with pytest.raises(StorageUnavailable, match="NoSuchBucket"):
                await call

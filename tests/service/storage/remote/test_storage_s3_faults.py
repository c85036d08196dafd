"""What the storage port says when the store fails: certain only of what is certain.

The server is real; the faults are made by a proxy in front of it.
"""

import asyncio

import pytest

from tests.servers.store_proxy import StoreFault, StoreProxy
from tests.service.log.log_contract import listed
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.index.postgres.engine import ConnectionSettings
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import DEFAULTS, StorageLimits

pytestmark = pytest.mark.anyio

APPLIED = [StoreFault.ANSWER_LOST, StoreFault.ERROR_AFTER]
NOT_APPLIED = [StoreFault.LOST, StoreFault.SLOW_DOWN, StoreFault.CONFLICT]
ANY = r""
PATIENCE_S = 15.0
impatient = pytest.mark.parametrize("limits", [StorageLimits(put_s=1.0, call_s=2.0)], ids=[""])
"""Deadlines that a test can wait for."""


@pytest.fixture
def direct(s3_server, s3_prefix):
    """The same table without the proxy."""
    return ObjectStorage(s3_prefix, options=s3_server.storage_options).log(f"{s3_prefix}/flights")


@pytest.fixture
def limits() -> StorageLimits:
    return DEFAULTS


@pytest.fixture
def storage(store_proxy: StoreProxy, s3_prefix, limits):
    return ObjectStorage(s3_prefix, options=store_proxy.storage_options, limits=limits)


@pytest.fixture
def log(storage, s3_prefix):
    return storage.log(f"{s3_prefix}/flights")


class TestPut:
    @pytest.mark.parametrize("fault", APPLIED)
    async def test_a_write_that_was_made_is_not_denied(self, log, direct, store_proxy, fault):
        store_proxy.script(fault)

        with pytest.raises(StorageUnknown):
            await log.put_if_absent(0, b"zero\n")

        assert await direct.read(0) == b"zero\n"
        assert await log.put_if_absent(0, b"zero\n") is PutResult.EXISTS

    @pytest.mark.parametrize("fault", NOT_APPLIED)
    async def test_one_that_was_not_is_not_claimed(self, log, direct, store_proxy, fault):
        store_proxy.script(fault)

        with pytest.raises(StorageUnknown):
            await log.put_if_absent(0, b"zero\n")

        assert await direct.read(0) is None
        assert await log.put_if_absent(0, b"zero\n") is PutResult.CREATED

    @pytest.mark.parametrize("fault", [*APPLIED, *NOT_APPLIED])
    async def test_it_is_sent_exactly_once(self, log, store_proxy, fault):
        store_proxy.always(fault)

        with pytest.raises(StorageUnknown):
            await log.put_if_absent(0, b"zero\n")

        assert store_proxy.count("PUT") == 1

    async def test_a_conflict_while_something_is_stored_is_still_no_proof(self, log, store_proxy):
        await log.put_if_absent(0, b"zero\n")
        store_proxy.script(StoreFault.CONFLICT)

        with pytest.raises(StorageUnknown, match="409 ConditionalRequestConflict"):
            await log.put_if_absent(0, b"other\n")

    async def test_a_refusal_is_certain(self, log, direct, store_proxy):
        store_proxy.script(StoreFault.DENIED)

        with pytest.raises(StorageUnavailable, match="403 AccessDenied"):
            await log.put_if_absent(0, b"zero\n")

        assert await direct.read(0) is None

    async def test_so_is_a_server_that_cannot_be_reached(self, s3_server, s3_prefix, free_tcp_port):
        options = {
            **s3_server.storage_options,
            "aws_endpoint": f"http://127.0.0.1:{free_tcp_port}",
        }
        log = ObjectStorage(s3_prefix, options=options).log(f"{s3_prefix}/flights")

        with pytest.raises(StorageUnavailable, match="could not be reached"):
            await log.put_if_absent(0, b"zero\n")

    @impatient
    async def test_one_that_is_held_ends_by_its_deadline(self, log, direct, store_proxy):
        store_proxy.script(StoreFault.HELD)
        with pytest.raises(StorageUnknown, match="in time"):
            await log.put_if_absent(0, b"zero\n")

        assert await direct.read(0) is None
        assert store_proxy.count("PUT") == 1

        await asyncio.to_thread(store_proxy.release)
        assert await direct.read(0) == b"zero\n"

    @impatient
    async def test_a_late_one_does_not_replace_what_came_before_it(self, log, direct, store_proxy):
        store_proxy.script(StoreFault.HELD)
        with pytest.raises(StorageUnknown):
            await log.put_if_absent(0, b"late\n")

        assert await log.put_if_absent(0, b"early\n") is PutResult.CREATED
        await asyncio.to_thread(store_proxy.release)

        assert await direct.read(0) == b"early\n"

    async def test_many_at_once_with_lost_answers_leave_one_content(self, log, direct, store_proxy):
        store_proxy.script(*[StoreFault.ANSWER_LOST] * 6)
        contents = [b"racer %d\n" % racer for racer in range(12)]

        results = await asyncio.gather(
            *(log.put_if_absent(0, content) for content in contents), return_exceptions=True
        )

        landed = await direct.read(0)
        assert sum(isinstance(result, StorageUnknown) for result in results) >= 6
        for result, content in zip(results, contents, strict=True):
            assert result is not PutResult.CREATED or landed == content
        assert landed in contents


class TestInOrder:
    """Several files, each begun when the store has said that the one before it is there."""

    @pytest.fixture
    def commits(self):
        return [(version, b"%d\n" % version) for version in range(5)]

    @staticmethod
    async def _lie(log) -> list[bytes | None]:
        return [await log.read(version) for version in range(5)]

    async def _ends_with(self, log, contents: list[bytes | None]) -> None:
        """Another one would follow the last at once."""
        for _ in range(10):
            assert await self._lie(log) == contents

    @pytest.mark.parametrize("fault", [*APPLIED, *NOT_APPLIED, StoreFault.DENIED])
    async def test_it_ends_before_one_that_has_no_answer(
        self, log, direct, store_proxy, commits, fault
    ):
        store_proxy.script(fault, path=r"2\.json$")

        results = await log.put_in_order(commits, within_s=PATIENCE_S)

        assert results == [PutResult.CREATED] * 2
        assert store_proxy.count("PUT") == 3
        third = b"2\n" if fault in APPLIED else None
        assert await self._lie(direct) == [b"0\n", b"1\n", third, None, None]

    @pytest.mark.parametrize("fault", [*APPLIED, *NOT_APPLIED])
    async def test_it_says_what_is_known_of_the_first(self, log, store_proxy, commits, fault):
        store_proxy.script(fault)
        with pytest.raises(StorageUnknown):
            await log.put_in_order(commits, within_s=PATIENCE_S)
        assert store_proxy.count("PUT") == 1

    async def test_a_refusal_of_the_first_is_certain(self, log, direct, store_proxy, commits):
        store_proxy.script(StoreFault.DENIED)
        with pytest.raises(StorageUnavailable, match="403"):
            await log.put_in_order(commits, within_s=PATIENCE_S)
        assert store_proxy.count("PUT") == 1
        assert await self._lie(direct) == [None] * 5

    @impatient
    @pytest.mark.parametrize("fault", [StoreFault.HELD, StoreFault.SLOW])
    async def test_none_follows_one_that_is_held(self, log, direct, store_proxy, commits, fault):
        store_proxy.script(fault, path=r"1\.json$")

        assert await log.put_in_order(commits, within_s=PATIENCE_S) == [PutResult.CREATED]

        await asyncio.to_thread(store_proxy.release)
        await self._ends_with(direct, [b"0\n", b"1\n", None, None, None])
        assert store_proxy.count("PUT") == 2

    @impatient
    async def test_nothing_is_known_of_a_first_one_that_is_held(
        self, log, direct, store_proxy, commits
    ):
        store_proxy.script(StoreFault.HELD)
        with pytest.raises(StorageUnknown, match="in time"):
            await log.put_in_order(commits, within_s=PATIENCE_S)
        await asyncio.to_thread(store_proxy.release)
        assert await self._lie(direct) == [b"0\n", None, None, None, None]

    async def test_none_is_begun_for_a_caller_who_has_left(self, log, direct, store_proxy, commits):
        store_proxy.script(StoreFault.SLOW, path=r"1\.json$")
        putting = asyncio.create_task(log.put_in_order(commits, within_s=PATIENCE_S))
        await asyncio.to_thread(store_proxy.wait_held)

        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        await asyncio.to_thread(store_proxy.release)

        await self._ends_with(direct, [b"0\n", b"1\n", None, None, None])
        assert store_proxy.count("PUT") == 2

    async def test_large_ones_are_put_in_the_same_order(self, log, direct, commits):
        large = [(version, content * 200_000) for version, content in commits]
        assert await log.put_in_order(large, within_s=PATIENCE_S) == [PutResult.CREATED] * 5
        assert await self._lie(direct) == [content for _, content in large]


class TestRead:
    @pytest.fixture(autouse=True)
    async def _put(self, direct, anyio_backend):
        await direct.put_if_absent(0, b"zero\n" * 1000)

    @pytest.mark.parametrize(
        "fault", [StoreFault.SLOW_DOWN, StoreFault.ERROR_AFTER, StoreFault.LOST, StoreFault.CUT]
    )
    async def test_a_passing_fault_is_tried_again(self, log, store_proxy, fault):
        store_proxy.script(fault, method="GET")

        assert await log.read(0) == b"zero\n" * 1000
        assert store_proxy.count("GET") == 2

    @impatient
    @pytest.mark.parametrize("fault", [StoreFault.SLOW_DOWN, StoreFault.HELD, StoreFault.CUT])
    async def test_a_lasting_one_is_no_answer(self, log, store_proxy, fault):
        store_proxy.always(fault, method="GET")
        with pytest.raises(StorageUnavailable):
            await log.read(0)

    async def test_a_refusal_is_no_missing_version(self, log, store_proxy):
        store_proxy.script(StoreFault.DENIED, method="GET")

        with pytest.raises(StorageUnavailable, match="403 AccessDenied"):
            await log.read(1)

    async def test_a_file_that_is_replaced_while_it_is_read_fails(
        self, log, store_proxy, s3_prefix
    ):
        file = await asyncio.to_thread(log.open_file, commit_name(0))
        path = f"/{s3_prefix.removeprefix('s3://')}/flights/_delta_log/{commit_name(0)}"
        await asyncio.to_thread(store_proxy.overwrite, path, b"other\n" * 1000)

        with pytest.raises(StorageUnavailable, match="replaced"):
            await asyncio.to_thread(file.read)


class TestList:
    @pytest.fixture(autouse=True)
    async def _plant(self, direct, anyio_backend):
        for version in range(20):
            await direct.put_if_absent(version, b"")

    async def test_a_listing_that_is_cut_short_is_not_taken_for_a_short_one(self, log, store_proxy):
        store_proxy.script(StoreFault.CUT, method="GET", path="list-type")

        with pytest.raises(StorageUnavailable):
            await listed(log)
        assert len(await listed(log)) == 20

    @pytest.mark.parametrize("fault", [StoreFault.SLOW_DOWN, StoreFault.LOST])
    async def test_a_passing_fault_is_tried_again(self, log, store_proxy, fault):
        store_proxy.script(fault, method="GET", path="list-type")

        names = [entry.name for entry in await listed(log)]

        assert names == [commit_name(version) for version in range(20)]

    @impatient
    @pytest.mark.parametrize("fault", [StoreFault.CUT, StoreFault.HELD])
    async def test_a_lasting_one_is_no_answer(self, log, store_proxy, fault):
        store_proxy.always(fault, method="GET", path="list-type")

        with pytest.raises(StorageUnavailable):
            await listed(log)


class TestProbe:
    async def test_a_store_that_ignores_conditions_is_refused(self, storage, store_proxy):
        store_proxy.always(StoreFault.CONDITION_IGNORED, path=ANY)

        with pytest.raises(StorageUnavailable, match="does not honour put-if-absent"):
            await storage.probe()

    async def test_it_is_found_again_after_that(self, storage, store_proxy):
        store_proxy.script(StoreFault.CONDITION_IGNORED, StoreFault.CONDITION_IGNORED, path=ANY)
        with pytest.raises(StorageUnavailable):
            await storage.probe()

        await storage.probe()

    @pytest.mark.parametrize("fault", [*APPLIED, *NOT_APPLIED, StoreFault.DENIED])
    async def test_a_store_that_does_not_answer_is_not_taken(self, storage, store_proxy, fault):
        store_proxy.always(fault, path=ANY)

        with pytest.raises(StorageUnavailable):
            await storage.probe()

    @pytest.mark.parametrize("fault", [*APPLIED, *NOT_APPLIED])
    async def test_a_passing_fault_is_tried_again(self, storage, store_proxy, fault):
        store_proxy.script(fault, fault, path=ANY)

        await storage.probe()

    async def test_a_store_that_may_not_be_listed_is_not_taken(self, storage, store_proxy):
        store_proxy.script(StoreFault.DENIED, method="GET", path="list-type")

        with pytest.raises(StorageUnavailable, match="could not list"):
            await storage.probe()

    async def test_once_it_has_passed_one_request_tells(self, storage, store_proxy):
        await storage.probe()
        before = len(store_proxy.seen)

        await storage.probe()

        assert [seen.method for seen in store_proxy.seen[before:]] == ["PUT"]


def test_no_deadline_outlasts_the_row_lock():
    """Postgres ends a transaction that is silent for longer, and releases its lock."""
    idle_s = ConnectionSettings().idle_in_transaction_timeout_ms / 1000

    assert DEFAULTS.put_s <= DEFAULTS.call_s < idle_s
    assert idle_s > CommitLimits().put_s

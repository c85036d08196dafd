"""The edge around every request: ids, deadlines of answers, defects, the log line."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.edge import Edge
from tidegate_service.api.http.exchange import ANSWER_BYTES
from tidegate_service.api.http.problems.problems import AnswerBrokenOff
from tidegate_service.api.http.request.limits import Limits
from tidegate_service.api.http.request.requests import Gate
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.logs import JsonFormatter

pytestmark = pytest.mark.anyio


class Boom(Exception):
    pass


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"{len(body)} bytes")(scope, receive, send)


async def broken(scope: Scope, receive: Receive, send: Send) -> None:
    raise Boom("secret inside")


async def impatient(scope: Scope, receive: Receive, send: Send) -> None:
    raise TimeoutError("not the deadline's")


def client_of(
    app: ASGIApp,
    *,
    deadline_s: float = 30.0,
    max_body_bytes: int = 100,
    max_requests: int = 10,
    gate: Gate | None = None,
) -> httpx.AsyncClient:
    limits = Limits(
        max_requests=max_requests,
        max_body_bytes=max_body_bytes,
        deadline_s=deadline_s,
        long_deadline_s=4 * deadline_s,
    )
    edge = Edge(app, limits=limits, gate=gate or Gate())
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(edge), base_url="http://tidegate", timeout=20
    )


@pytest.fixture(autouse=True)
def _all_events(caplog):
    caplog.set_level(logging.DEBUG, "tidegate")


def access_events(caplog) -> list[dict[str, object]]:
    formatter = JsonFormatter()
    return [
        json.loads(formatter.format(record))
        for record in caplog.records
        if record.name == "tidegate.access"
    ]


class TestRequestIds:
    async def test_a_safe_one_is_kept(self):
        async with client_of(echo) as client:
            answer = await client.get("/", headers={"X-Request-Id": "job-7.a_B"})
        assert answer.headers["x-request-id"] == "job-7.a_B"

    @pytest.mark.parametrize("given", [b"", b"a b", b"x\x1b[31m", b"a" * 129, "é".encode(), b'"'])
    async def test_another_is_replaced(self, given):
        async with client_of(echo) as client:
            answer = await client.get("/", headers=[(b"X-Request-Id", given)])
        assert len(answer.headers["x-request-id"]) == 32

    async def test_each_request_gets_its_own(self):
        async with client_of(echo) as client:
            ids = {(await client.get("/")).headers["x-request-id"] for _ in range(3)}
        assert len(ids) == 3


class TestDeadline:
    async def test_an_answer_on_its_way_may_take_longer_as_a_whole(self):
        async def slow() -> AsyncIterator[bytes]:
            for _ in range(8):
                await asyncio.sleep(0.1)
                yield b"x" * ANSWER_BYTES

        async with client_of(StreamingResponse(slow()), deadline_s=0.5) as client:
            answer = await client.get("/")
        assert len(answer.content) == 8 * ANSWER_BYTES

    @pytest.mark.parametrize("size", [1, ANSWER_BYTES], ids=["a trickle", "a flood"])
    async def test_an_answer_that_goes_on_for_ever_is_broken_off(self, caplog, size):
        async def endless() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0.01)
                yield b"x" * size

        async with (
            asyncio.timeout(60),
            client_of(StreamingResponse(endless()), deadline_s=0.1) as c,
        ):
            with pytest.raises(AssertionError):
                await c.get("/")
        (event,) = access_events(caplog)
        assert (event["broken_off"], event["code"]) == (True, Code.DEADLINE_EXCEEDED)

    async def test_an_answer_that_stalls_is_broken_off(self, caplog):
        async def stalled() -> AsyncIterator[bytes]:
            yield b"x"
            await asyncio.Event().wait()

        async with client_of(StreamingResponse(stalled()), deadline_s=0.05) as client:
            with pytest.raises(AssertionError):
                # httpx's transport asserts that an answer is complete.
                await client.get("/")
        (event,) = access_events(caplog)
        assert event["broken_off"] is True


class TestDefects:
    async def test_they_are_told_by_an_id_and_logged_in_full(self, caplog):
        async with client_of(broken) as client:
            answer = await client.get("/")
        assert answer.status_code == 500
        problem = answer.json()
        assert problem["code"] == Code.INTERNAL_ERROR
        assert "secret" not in answer.text
        (defect,) = (record for record in caplog.records if record.name == "tidegate.defect")
        logged = json.loads(JsonFormatter().format(defect))
        assert logged["error_id"] == problem["error_id"]
        assert logged["request_id"] == problem["instance"]
        assert "Boom: secret inside" in logged["traceback"]

    async def test_a_timeout_inside_is_not_taken_for_the_deadline(self):
        async with client_of(impatient) as client:
            assert (await client.get("/")).status_code == 500

    async def test_an_answer_that_breaks_off_for_a_known_reason_is_no_defect(self, caplog):
        async def half() -> AsyncIterator[bytes]:
            yield b"x"
            raise AnswerBrokenOff(IndexUnavailable("the database is gone"))

        async with client_of(StreamingResponse(half())) as client:
            with pytest.raises(AssertionError):
                await client.get("/")
        (event,) = access_events(caplog)
        assert event["code"] == Code.INDEX_UNAVAILABLE
        assert event["broken_off"] is True
        assert not [record for record in caplog.records if record.name == "tidegate.defect"]


class TestGate:
    async def test_it_counts_what_is_under_way(self):
        gate = Gate()
        inside = asyncio.Event()
        go_on = asyncio.Event()

        async def waits(scope: Scope, receive: Receive, send: Send) -> None:
            inside.set()
            await go_on.wait()
            await PlainTextResponse("done")(scope, receive, send)

        async with client_of(waits, gate=gate, max_requests=1) as client:
            first = asyncio.create_task(client.get("/api/v1/tables"))
            await inside.wait()
            assert gate.under_way == 1
            second = await client.get("/api/v1/tables")
            go_on.set()
            assert (await first).status_code == 200
        assert second.status_code == 429
        assert second.json()["code"] == Code.BACKPRESSURE
        assert gate.under_way == 0


class TestLogLine:
    async def test_health_checks_that_succeed_are_quiet(self, caplog):
        async with client_of(echo) as client:
            await client.get("/readyz")
        (record,) = (record for record in caplog.records if record.name == "tidegate.access")
        assert record.levelno == logging.DEBUG

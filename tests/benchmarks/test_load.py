"""The load generator: what it sends, what it takes for an answer, and a load of the service."""

import asyncio
import json
import re

import pytest

from benchmarks.load import generator, loading
from benchmarks.load.plan import Kind, Plan
from benchmarks.load.writer_requests import Appends, Overwrites, Requests
from benchmarks.rig.world import scratch, standing

TABLE = "main.bench.t"


def plan(kind=Kind.APPEND, *, port=1, writers=2):
    return Plan(
        host="127.0.0.1",
        port=port,
        tables=(TABLE,),
        kind=kind,
        writers=writers,
        warm_up_s=0.0,
        seconds=0.2,
        name="test",
        watched={},
    )


def body_of(request: bytes):
    head, _, body = request.partition(b"\r\n\r\n")
    assert int(re.search(rb"Content-Length: (\d+)", head).group(1)) == len(body)
    return json.loads(body)


class TestRequests:
    def test_every_append_is_another_one(self):
        writers: list[Requests] = [Appends(plan(), TABLE, writer=number) for number in (0, 1)]
        bodies = [body_of(each.next()) for each in writers for _ in range(3)]
        assert len({body["transaction_id"] for body in bodies}) == 6
        assert len({body["actions"][0]["add"]["path"] for body in bodies}) == 6

    def test_one_that_was_refused_is_sent_as_it_was(self):
        requests = Appends(plan(), TABLE, writer=0)
        assert requests.next() == requests.same() != requests.next()

    def test_an_overwrite_removes_the_file_before_at_the_version_that_added_it(self):
        requests = Overwrites(plan(Kind.OVERWRITE), TABLE, writer=3)
        first = body_of(requests.next())
        assert (first["read_version"], len(first["actions"])) == (0, 1)
        requests.landed(41)
        second = body_of(requests.next())
        assert second["read_version"] == 41
        assert second["reads"] == {"predicates": ["p = 'w003'"]}
        removed, added = second["actions"]
        assert removed["remove"]["path"] == first["actions"][0]["add"]["path"]
        assert added["add"]["path"] != removed["remove"]["path"]
        assert added["add"]["partitionValues"] == {"p": "w003"}


class TestAnswers:
    @pytest.mark.parametrize("name", [b"content-length", b"Content-Length"])
    def test_length_and_version_are_found(self, name):
        answer = b"HTTP/1.1 201 Created\r\n%s: 17\r\n\r\n" % name + b'{"version": 1204}'
        assert generator.content_length(answer, answer.index(b"\r\n\r\n")) == 17
        assert generator.version_in(answer) == 1204

    @pytest.mark.parametrize(
        ("answers", "message"),
        [
            (["201 Created", '{"version":7}', '{"version":7}'], "version 7 .* was given twice"),
            (["200 OK", '{"version":7}'], "unexpected answer: HTTP/1.1 200"),
            (["409 Conflict", '{"code":"x"}'], "unexpected answer: HTTP/1.1 409"),
        ],
    )
    @pytest.mark.anyio
    async def test_what_is_not_a_new_version_ends_the_load(self, answers, message):
        status, *bodies = answers
        with pytest.raises(RuntimeError, match=message):
            await loaded(status, iter(bodies))


async def loaded(status, bodies):
    """The end of a load of a server that answers so, one body after the other."""

    async def answer(reader, writer):
        while (head := await reader.readuntil(b"\r\n\r\n")) and (body := next(bodies, None)):
            await reader.readexactly(int(re.search(rb"Content-Length: (\d+)", head).group(1)))
            head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n"
            # In two parts, as a network may have it.
            writer.write(head.encode())
            await writer.drain()
            writer.write(body.encode())
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        found = plan(port=server.sockets[0].getsockname()[1], writers=1)
        tally = generator.Tally(found.tables)
        loop = asyncio.get_running_loop()
        requests = next(generator.requests_of(found))
        _, writer = await loop.create_connection(
            lambda: generator.Writer(requests, tally), found.host, found.port
        )
        writer.start()
        try:
            await asyncio.wait_for(tally.failed, 30)
        finally:
            writer.close()


def test_loads_of_the_service_as_the_benches_make_them():
    with scratch(None) as folder, standing(folder) as world:
        service = world.service
        tables = [service.create_table(catalog_managed=True) for _ in range(2)]
        appended = loading.appends(world, service, tables, writers=4, seconds=0.5)
        assert appended.told.commits > 0
        assert appended.told.requests == appended.told.commits
        assert set(appended.cpu_us) == {"service", "postgres", "load"}
        assert appended.commits_per_second > 0
        assert appended.p50_ms <= appended.p99_ms

        partitioned = service.create_table(catalog_managed=True, partition_columns=("p",))
        overwritten = loading.overwrites(world, service, partitioned, writers=3, seconds=0.5)
        assert overwritten.told.commits > 0
        assert overwritten.told.conflicts == 0
        latest, published = service.head(partitioned)
        assert latest == published >= overwritten.told.commits

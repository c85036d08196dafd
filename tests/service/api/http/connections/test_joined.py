"""When an answer's bytes are sent: the head with what follows it, and never kept back."""

import asyncio

import pytest

from tidegate_service.api.server.joined import Joined

HEAD = b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.packets.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


pytestmark = pytest.mark.anyio


def joined() -> tuple[Wire, Joined]:
    wire = Wire()
    return wire, Joined(wire, asyncio.get_running_loop(), close=wire.close)


async def test_a_head_goes_with_its_body():
    wire, answer = joined()
    answer.write(HEAD)
    answer.write(b"body")
    assert wire.packets == [HEAD + b"body"]
    await asyncio.sleep(0)
    assert wire.packets == [HEAD + b"body"]


async def test_what_comes_later_goes_as_it_comes():
    wire, answer = joined()
    for part in (HEAD, b"one", b"HTTP/1.1 200 OK", b"three"):
        answer.write(part)
    assert wire.packets == [HEAD + b"one", b"HTTP/1.1 200 OK", b"three"]


async def test_a_head_alone_does_not_wait_for_another_turn():
    wire, answer = joined()
    answer.write(HEAD)
    await asyncio.sleep(0)
    assert wire.packets == [HEAD]
    answer.write(b"body")
    assert wire.packets == [HEAD, b"body"]


async def test_a_head_alone_goes_before_the_end():
    wire, answer = joined()
    answer.write(HEAD)
    answer.close()
    assert wire.packets == [HEAD]
    assert answer.is_closing()
    await asyncio.sleep(0)
    assert wire.packets == [HEAD]


async def test_go_on_is_no_head():
    wire, answer = joined()
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    answer.write(go_on)
    assert wire.packets == [go_on]
    answer.write(HEAD)
    answer.write(b"")
    assert wire.packets == [go_on, HEAD]


async def test_a_long_body_is_not_copied_but_sent_all_the_same():
    wire, answer = joined()
    body = b"x" * 100_000
    answer.write(HEAD)
    answer.write(body)
    assert b"".join(wire.packets) == HEAD + body

"""Requests that two readers could read as two different ones, or one as another."""

import re

import pytest

from tests.service.api.http.connections.requests_by_hand import exchange

HOST = "Host: localhost\r\n"
JSON = f"{HOST}Content-Type: application/json\r\n"
POST = "POST /api/v1/tables HTTP/1.1\r\n"
ANSWER = re.compile(rb"HTTP/1\.1 \d")
SECOND = "GET /api/v1/tables HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: smuggled\r\n\r\n"

AMBIGUOUS = {
    "both lengths": f"{POST}{JSON}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, the other way round": f"{POST}{JSON}Transfer-Encoding: chunked\r\n"
    "Content-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": f"{POST}{JSON}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    "the same length twice": f"{POST}{JSON}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}",
    "a list of lengths": f"{POST}{JSON}Content-Length: 2, 3\r\n\r\n{{}}",
    "a signed length": f"{POST}{JSON}Content-Length: +2\r\n\r\n{{}}",
    "a length in hex": f"{POST}{JSON}Content-Length: 0x2\r\n\r\n{{}}",
    "a length with a space": f"{POST}{JSON}Content-Length: 1 0\r\n\r\n{{}}",
    "a space before the colon": f"{POST}{JSON}Content-Length : 2\r\n\r\n{{}}",
    "an unknown coding": f"{POST}{JSON}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding after chunked": f"{POST}{JSON}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a folded header": f"{POST}{JSON}A: b\r\n Transfer-Encoding: chunked\r\n\r\n",
    "a bare return": f"{POST}{JSON}A: b\rTransfer-Encoding: chunked\r\n\r\n",
    "a NUL in a value": f"{POST}{JSON}A: b\0c\r\n\r\n",
    "a header without a name": f"{POST}{JSON}: b\r\n\r\n",
    "a header without a colon": f"{POST}{JSON}Transfer-Encoding\r\n\r\n",
    "a chunk size beyond numbers": f"{POST}{JSON}Transfer-Encoding: chunked\r\n\r\n{'f' * 17}\r\n",
    "a negative chunk size": f"{POST}{JSON}Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk size with a prefix": f"{POST}{JSON}Transfer-Encoding: chunked\r\n\r\n0x2\r\n{{}}\r\n",
    "a chunk without its end": f"{POST}{JSON}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}0\r\n\r\n",
    "no chunk size": f"{POST}{JSON}Transfer-Encoding: chunked\r\n\r\n\r\n{{}}\r\n",
    "a whole URL": f"GET http://localhost/api/v1/tables HTTP/1.1\r\n{HOST}\r\n",
    "another host's URL": f"GET http://attacker.example/healthz HTTP/1.1\r\n{HOST}\r\n",
    "a host alone": f"CONNECT localhost:80 HTTP/1.1\r\n{HOST}\r\n",
    "an asterisk": f"OPTIONS * HTTP/1.1\r\n{HOST}\r\n",
    "a backslash": f"GET \\api\\v1\\tables HTTP/1.1\r\n{HOST}\r\n",
    "a space in the target": f"GET /api/v1/tables x HTTP/1.1\r\n{HOST}\r\n",
    "a tab after the method": f"GET\t/healthz HTTP/1.1\r\n{HOST}\r\n",
    "a version with two digits": f"GET /healthz HTTP/1.10\r\n{HOST}\r\n",
    "no version": f"GET /healthz\r\n{HOST}\r\n",
}


@pytest.mark.parametrize("sent", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_it_is_refused_and_what_follows_is_not_read(shared_server, sent):
    answer = exchange(shared_server, (sent + SECOND).encode("latin-1"))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"malformed-http"' in answer
    assert b"smuggled" not in answer
    assert len(ANSWER.findall(answer)) == 1


def test_line_feeds_alone_do_not_make_a_second_request(shared_server):
    sent = f"GET /healthz HTTP/1.1\r\n{HOST}X-A: b\n\nGET /api/v1/tables HTTP/1.1\n{HOST}\r\n\r\n"
    answer = exchange(shared_server, sent.encode())
    assert b'"tables"' not in answer


class TestTrailers:
    @pytest.mark.parametrize(
        "trailer", ["Authorization: Bearer x", "Host: attacker.example", "X-Request-Id: smuggled"]
    )
    def test_they_are_no_headers(self, shared_server, trailer):
        sent = (
            f"{POST}{JSON}X-Request-Id: mine\r\nConnection: close\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n{trailer}\r\n\r\n"
        )
        answer = exchange(shared_server, sent.encode())
        assert answer.startswith(b"HTTP/1.1 422 ")
        assert b"x-request-id: mine" in answer
        assert b"smuggled" not in answer


class TestHeads:
    def test_a_hundred_headers_are_taken(self, shared_server):
        headers = "".join(f"X-{number}: a\r\n" for number in range(97))
        sent = f"GET /healthz HTTP/1.1\r\n{HOST}Connection: close\r\n{headers}\r\n"
        assert exchange(shared_server, sent.encode()).startswith(b"HTTP/1.1 200 ")

    @pytest.mark.parametrize(
        "given", ["a\r\nSet-Cookie: x", "a%0d%0aSet-Cookie: x", "\u0085x", "é"]
    )
    def test_nothing_of_a_request_becomes_a_header(self, shared_server, given):
        sent = f"GET /{given.partition(chr(13))[0]} HTTP/1.1\r\n{HOST}X-Request-Id: {given}\r\n"
        answer = exchange(
            shared_server, (sent + "Connection: close\r\n\r\n").encode("latin-1", "replace")
        )
        head = answer.partition(b"\r\n\r\n")[0].lower()
        assert b"set-cookie" not in head

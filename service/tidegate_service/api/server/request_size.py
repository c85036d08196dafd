"""How much a request says of itself: its target, its headers, trailers and chunks.

The parser calls Python for each of them, on the event loop and before there is a request that waits
for its turn. So they are counted as they come, and the first one too many ends the parser's work.
"""

from tidegate_protocol.base.problems import Code

MAX_HEAD_BYTES = 16 * 1024
"""Of a request's line and headers, and of its trailers."""
MAX_HEADERS = 100
"""And as many trailers."""
MAX_QUERY_BYTES = 10 * 1024
"""The longest that a call takes has three names of 255 characters, of four bytes each, escaped."""
MAX_PARAMETERS = 32
MAX_ESCAPES = 4_096
"""Of the path and the query: an application's id of 1,024 characters, of four bytes each, has as
many."""
FREE_CHUNKS = 1_000
"""Of any size: a program that sends what it has as it finds it begins with small ones."""
CHUNK_BYTES = 64
"""Of those beyond, on average."""


FRAMING_BYTES = 512 * 1024
"""What may be read beside the data of a body that is not complete: its head, and what chunks say
beside their sizes."""
CHUNK_FRAMING_BYTES = 32
"""And for each chunk."""


class TooMuch(Exception):
    """Ends the parser's work on a request, which is told this."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class RequestSize:
    """The size of one request so far. Each method raises `TooMuch`."""

    __slots__ = ("_bytes", "_chunks", "_data", "_lines", "_received")

    def __init__(self) -> None:
        self._lines = 0
        self._bytes = 0
        self._chunks = 0
        self._data = 0
        self._received = 0

    def header(self, name: bytes, value: bytes) -> None:
        """One more header, or trailer."""
        self._lines += 1
        self._bytes += len(name) + len(value)
        if self._lines > MAX_HEADERS or self._bytes > MAX_HEAD_BYTES:
            raise long_head()

    def head_ends(self, target: bytes) -> None:
        """What comes now is the body, and then trailers."""
        if len(target) + self._bytes > MAX_HEAD_BYTES:
            raise long_head()
        _check(target)
        self._lines = self._bytes = 0

    def chunk(self) -> None:
        """One more, whose data is still to come."""
        self._chunks += 1
        if self._chunks > FREE_CHUNKS + self._data // CHUNK_BYTES:
            raise TooMuch(
                Code.TOO_LARGE,
                f"expected a body in chunks of {CHUNK_BYTES} bytes or more, but for "
                f"{FREE_CHUNKS:,}; found {self._chunks:,} for {self._data:,} bytes",
            )

    def data(self, size: int) -> None:
        """So much of the body."""
        self._data += size

    def received(self, size: int) -> None:
        """So much was read, and the body is not complete."""
        self._received += size
        framing = self._received - self._data
        if framing > FRAMING_BYTES + self._chunks * CHUNK_FRAMING_BYTES:
            raise TooMuch(
                Code.TOO_LARGE,
                f"expected at most {FRAMING_BYTES} bytes beside the data of a body, and "
                f"{CHUNK_FRAMING_BYTES} for each chunk; found {framing}",
            )


def long_head() -> TooMuch:
    """What a head is told that is too large."""
    return TooMuch(
        Code.TOO_LARGE,
        f"the request line and headers are larger than {MAX_HEAD_BYTES} bytes, or more than "
        f"{MAX_HEADERS} headers",
    )


def _check(target: bytes) -> None:
    query = target.partition(b"?")[2]
    parameters = query.count(b"&") + 1
    if len(query) > MAX_QUERY_BYTES or parameters > MAX_PARAMETERS:
        raise TooMuch(
            Code.TOO_LARGE,
            f"expected a query of at most {MAX_QUERY_BYTES} bytes and {MAX_PARAMETERS} "
            f"parameters, found {len(query)} bytes and {parameters} parameters",
        )
    escapes = target.count(b"%")
    if escapes > MAX_ESCAPES:
        raise TooMuch(
            Code.TOO_LARGE,
            f"expected a request target with at most {MAX_ESCAPES} escapes (%), found {escapes}",
        )

"""Compressed request bodies: gzip, inflated as it comes, within two bounds.

The edge bounds what is received; here it is what that becomes. A few kilobytes can inflate to
gigabytes, so the output is counted piece by piece and never made before it is.
"""

import zlib
from collections.abc import Iterator

from fastapi import Request

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused

GZIP = "gzip"
MAX_RATIO = 100
"""Most bytes that a byte received may become. Actions, which repeat themselves, reach 30."""
FREE_BYTES = 1024 * 1024
"""Below this size the ratio says nothing: a short text of blanks is no attack."""
FREE_MEMBERS = 64
MEMBER_BYTES = 1024
"""Most members of gzip: the first of these, and one more for so many bytes that they inflate to.
Each costs as much as some kilobytes do, and may hold nothing."""
_PIECE = 256 * 1024
_GZIP_ONLY = 16 + zlib.MAX_WBITS


def is_gzip(request: Request) -> bool:
    """Whether the body is gzip; False for one that is sent as it is. Raises `Refused`
    (`unsupported-media-type`) for another encoding."""
    encodings = request.headers.getlist("content-encoding")
    encoding = ", ".join(encodings).strip().lower()
    if encoding in ("", "identity"):
        return False
    if encoding not in (GZIP, "x-gzip"):
        raise Refused(
            f"bodies with Content-Encoding {encoding[:40]!r} are not taken; send gzip, or none",
            code=Code.UNSUPPORTED_MEDIA_TYPE,
        )
    return True


class Gunzip:
    """Members of gzip, one after the other, to one text of at most `max_bytes`, a piece at a time.

    Raises `Refused`: `too-large` beyond a bound, `malformed-http` for what is not whole gzip.
    """

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._received = 0
        self._size = 0
        self._members = 1
        self._member = zlib.decompressobj(_GZIP_ONLY)
        self._begun = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What the next bytes that came inflate to."""
        self._received += len(chunk)
        while chunk:
            if self._member.eof:
                self._members += 1
                self._check_members()
                self._member = zlib.decompressobj(_GZIP_ONLY)
            self._begun = True
            try:
                piece = self._member.decompress(chunk, _PIECE)
            except zlib.error:
                raise _not_gzip("they are not") from None
            self._size += len(piece)
            self._check()
            yield piece
            chunk = self._member.unconsumed_tail or self._member.unused_data

    def end(self) -> None:
        """Nothing more comes."""
        if not self._begun or not self._member.eof:
            raise _not_gzip("they end too soon")

    def _check_members(self) -> None:
        if self._members > FREE_MEMBERS + self._size // MEMBER_BYTES:
            raise _too_large(
                f"comes in {self._members} members of gzip, of less than {MEMBER_BYTES} bytes each"
            )

    def _check(self) -> None:
        if self._size > self._max_bytes:
            raise _too_large(f"is more than {self._max_bytes} bytes")
        if self._size > FREE_BYTES and self._size > MAX_RATIO * self._received:
            raise _too_large(f"is more than {MAX_RATIO} times what was sent")


def _not_gzip(why: str) -> Refused:
    # 400, and no 422: it says nothing of the body that was meant, of which an earlier copy may
    # have been taken.
    return Refused(
        f"the body's bytes should be gzip, as Content-Encoding says, but {why}",
        code=Code.MALFORMED_HTTP,
    )


def _too_large(why: str) -> Refused:
    return Refused(
        f"the body, inflated, {why}",
        code=Code.TOO_LARGE,
        hint="split the work into several transactions",
    )

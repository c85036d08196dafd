"""A zstd frame, expanded a block at a time as its bytes come, so that a few of them are no bomb.

Four bytes of a frame may say 128 KiB of one byte, again and again, and a decompressor makes all
that is in the bytes it is given. Layout: RFC 8878, section 3.1.1.
"""

import zstandard
from zstandard import ZstdError

__all__ = ["HEAD_BYTES", "Frame", "ZstdError"]

HEAD_BYTES = 18
"""A frame's header is not longer."""
_BLOCK_HEAD = 3
_RUN = 1
"""The type of a block that is one byte, repeated."""
_CHECKSUM = 4


class Frame:
    """One frame that says how long its content is. It is fed in order, and expanded by `more`."""

    def __init__(self, head: bytes) -> None:
        """By the first `HEAD_BYTES` or more of it, which are fed again. Raises
        `zstandard.ZstdError`."""
        self.size = int(zstandard.frame_content_size(head))
        self._to_skip = zstandard.frame_header_size(head)
        self._checksum = zstandard.get_frame_parameters(head).has_checksum
        self._expand = zstandard.ZstdDecompressor().decompressobj().decompress
        self._fed = bytearray()
        self._is_last = False

    @property
    def is_over(self) -> bool:
        """Whether all of its blocks were expanded."""
        return self._is_last

    def feed(self, piece: bytes) -> None:
        self._fed += piece

    def more(self, most: int) -> bytes:
        """What its next whole blocks are: `most` bytes and one block at most. Nothing where no
        whole block was fed. Raises `zstandard.ZstdError`."""
        made: list[bytes] = []
        size = at = 0
        while size < most and not self._is_last:
            end = self._end_of_next(at)
            if end is None:
                break
            text = self._expand(bytes(self._fed[at:end]))
            made.append(text)
            size += len(text)
            at = end
        del self._fed[:at]
        return b"".join(made)

    def _end_of_next(self, at: int) -> int | None:
        """The end of what begins there: the header with the first block, or a block."""
        start = at + self._to_skip
        if len(self._fed) < start + _BLOCK_HEAD:
            return None
        block = int.from_bytes(self._fed[start : start + _BLOCK_HEAD], "little")
        is_last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        end = start + _BLOCK_HEAD + (1 if kind == _RUN else size)
        end += _CHECKSUM if is_last and self._checksum else 0
        if len(self._fed) < end:
            return None
        self._to_skip = 0
        self._is_last = is_last
        return end

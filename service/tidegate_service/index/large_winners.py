"""Winners of very many actions, read from the index without holding all of their bytes."""

from collections.abc import Iterator

from tidegate_protocol.actions import Action
from tidegate_protocol.bulk import BulkDecoder
from tidegate_protocol.codec import decode_lines
from tidegate_protocol.commits import summarize
from tidegate_protocol.transaction import Winner
from tidegate_service.core.spool import Spool
from tidegate_service.index.stored_content import StoredContent

LARGE_BYTES = 256 * 1024
"""A content that is larger than this, as it is stored, is read in a thread and in pieces."""


def large_winner(version: int, timestamp: int, stored: bytes) -> Winner:
    """A row's version, timestamp (ms) and content as the conflict rules look at them."""
    bulk = BulkDecoder(Spool().keep)
    actions: list[Action] = []
    for text in _texts(stored):
        found = bulk.decode(text)
        actions += bulk.keep(list(decode_lines(text))) if found is None else found
    return summarize(version, actions, timestamp_fallback=timestamp)


def _texts(stored: bytes) -> Iterator[bytes]:
    """The content, some whole lines at a time, each ended."""
    rest = b""
    for piece in StoredContent(stored).pieces():
        text = rest + piece
        end = text.rfind(b"\n") + 1
        rest = text[end:]
        if end:
            yield text[:end]
    if rest.strip():
        yield rest + b"\n"

"""Any text as an index key.

Paths, transaction ids, application ids and domains come from writers, foreign ones included,
and the commit that carries them may lie in the log already: the index has to hold them all.
Postgres refuses U+0000 in text and index entries beyond about 2,700 bytes.
"""

from hashlib import sha256

MAX_KEY_BYTES = 1024
_DIGEST = "sha256:"


def key(text: str) -> str:
    """The text itself where it can be an index key, else `sha256:` and its digest in hex."""
    data = text.encode()
    if len(data) <= MAX_KEY_BYTES and b"\0" not in data and not text.startswith(_DIGEST):
        return text
    return _DIGEST + sha256(data).hexdigest()

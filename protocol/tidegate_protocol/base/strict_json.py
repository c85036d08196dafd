"""JSON that no two readers read differently.

The bytes that are checked are the bytes that land, and other engines read them with other
parsers. So what parsers disagree on is refused here: duplicate keys, NaN, numbers out of range,
lone surrogates and other invalid Unicode, NUL in a string, and nesting that exhausts a stack.
"""

import json
import re
from collections.abc import Iterable

import msgspec


class InvalidJson(ValueError):
    """The text is not JSON, or JSON that is ambiguous; the message says why."""


MAX_DEPTH = 64
MAX_CONTAINERS = 250_000
"""Most objects and arrays of one text, those that its strings seem to hold included: each takes
two hundred bytes of memory and as little as two of text."""
MAX_VALUES = 500_000
"""Most values of one text, counted by its commas, those in its strings included: whatever else runs
in the process waits while they are made, some hundredths of a second."""

NAMED_BYTES = 64 * 1024
"""Of a longer text it is not said which key is there twice: that takes a slower parser."""

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()

_ESCAPED_COLON = re.compile(rb"(?<!\\)(?:\\\\)*\\u003[aA]")


def decode(raw: bytes, *, max_depth: int = MAX_DEPTH) -> object:
    """The value of exactly one JSON text. Raises `InvalidJson`."""
    if containers(raw) > MAX_CONTAINERS:
        raise InvalidJson(f"it has more than {MAX_CONTAINERS} objects and arrays")
    if raw.count(b",") > MAX_VALUES:
        raise InvalidJson(f"it has more than {MAX_VALUES} values")
    try:
        value: object = _DECODER.decode(raw)
        again = _ENCODER.encode(value)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidJson(f"not valid JSON: {error}") from None
    except RecursionError:
        raise InvalidJson(f"nested deeper than {max_depth} levels") from None
    if containers(raw) > max_depth:
        _check_depth(value, max_depth)
    if b"\\u0000" in raw:
        _check_nul(value)
    # Compact JSON with distinct keys comes back as it was.
    if again != raw and _colons(raw) != again.count(b":"):
        raise InvalidJson(f"{_twice(raw)} appears twice in one object")
    return value


def containers(raw: bytes) -> int:
    """How many objects and arrays a JSON text may have at most. Makes none of them."""
    return raw.count(b"{") + raw.count(b"[")


def _children(node: object) -> Iterable[object]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def _check_depth(value: object, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    if any(isinstance(node, dict | list) for node in level):
        raise InvalidJson(f"nested deeper than {max_depth} levels")


def _check_nul(value: object) -> None:
    nodes = [value]
    while nodes:
        node = nodes.pop()
        texts = node.keys() if isinstance(node, dict) else (node,)
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise InvalidJson("a string contains the character NUL")
        nodes.extend(_children(node))


def _colons(raw: bytes) -> int:
    """How many colons a JSON text has, those that its strings spell as an escape included. Each key
    has one behind it, so a text has more of them than its value where the value lacks a key."""
    escaped = sum(1 for _ in _ESCAPED_COLON.finditer(raw)) if b"\\u003" in raw else 0
    return raw.count(b":") + escaped


def _twice(raw: bytes) -> str:
    """The key that an object of the text has twice."""
    found: list[str] = []

    def check(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found.append(key)
            seen.add(key)

    if len(raw) <= NAMED_BYTES:
        json.loads(raw, object_pairs_hook=check)
    return f"the key {found[0]!r}" if found else "a key"

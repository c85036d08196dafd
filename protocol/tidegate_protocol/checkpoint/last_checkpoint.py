"""`_last_checkpoint`, which points readers to the newest checkpoint (PROTOCOL.md, "Last Checkpoint
File" and "JSON checksum")."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import md5
from typing import Any
from urllib.parse import quote

import msgspec

CHECKSUM = "checksum"
MOST_BYTES = 256 * 1024
"""Of a file that is read. Delta writes some ten thousand characters of a schema there at most."""

_JSON = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Files:
    """Of a V2 checkpoint: its main file with its size in bytes and its time in ms."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpoint:
    """A complete checkpoint. `num_actions` counts the rows of all its files, `num_adds` the live
    files among them; `size` is in bytes; `parts` is None where it has one file."""

    version: int
    num_actions: int
    num_adds: int
    size: int
    parts: int | None = None
    v2: V2Files | None = None


def encode(last: LastCheckpoint) -> bytes:
    """The content of `_last_checkpoint`, its checksum included."""
    content: dict[str, Any] = {"version": last.version, "size": last.num_actions}
    if last.parts is not None:
        content["parts"] = last.parts
    content["sizeInBytes"] = last.size
    content["numOfAddFiles"] = last.num_adds
    if last.v2 is not None:
        content["v2Checkpoint"] = {
            "path": last.v2.path,
            "sizeInBytes": last.v2.size,
            "modificationTime": last.v2.modified_ms,
        }
    return _JSON.encode({**content, CHECKSUM: checksum(content)})


def version_of(content: bytes) -> int | None:
    """The version that such a file points to; None where it cannot be read."""
    pointer = pointer_of(content)
    return None if pointer is None else pointer.version


def pointer_of(content: bytes) -> "Pointer | None":
    """What such a file points to; None where it cannot be read, or is longer than `MOST_BYTES`."""
    if len(content) > MOST_BYTES:
        return None
    try:
        return _POINTER.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def checksum(content: Mapping[str, Any]) -> str:
    """The MD5, in hex, of the canonical form of a JSON object, its own checksum left out."""
    without = {name: value for name, value in content.items() if name != CHECKSUM}
    return md5(canonical(without).encode(), usedforsecurity=False).hexdigest()


def canonical(value: object) -> str:
    """The canonical form of a JSON value: its leaves with the paths to them, in the order of the
    paths' bytes."""
    leaves = sorted(_leaves(value, ()), key=lambda leaf: leaf[0].encode())
    return ",".join(f"{path}={leaf}" if path else leaf for path, leaf in leaves)


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    match value:
        case Mapping():
            for name, inner in value.items():
                yield from _leaves(inner, (*path, _text(name)))
        case list() | tuple():
            for place, inner in enumerate(value):
                yield from _leaves(inner, (*path, str(place)))
        case str():
            yield "+".join(path), _text(value)
        case _:
            yield "+".join(path), _JSON.encode(value).decode()


def _text(value: str) -> str:
    return f'"{quote(value, safe="")}"'


class Pointer(msgspec.Struct, frozen=True, rename="camel"):
    """A checkpoint's version, and its size in bytes as its writer says it, in whatever form: what
    is in there is not made into values."""

    version: int
    size_in_bytes: msgspec.Raw = msgspec.Raw()

    @property
    def size(self) -> int | None:
        """The size; None where the writer did not say one."""
        told = bytes(self.size_in_bytes)
        return int(told) if told.isdigit() and len(told) <= _DIGITS else None


_DIGITS = 18
_POINTER = msgspec.json.Decoder(Pointer)

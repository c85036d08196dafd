"""The bytes of a commit file, whole or, where they are many, in pieces made as they are needed."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.log.spooled import Spooled

_LINES_A_PIECE = 1000


class Pieces(Protocol):
    """Bytes that are not held in one piece; `len` says how many."""

    def pieces(self) -> Iterator[bytes]:
        """All of them in order, some hundred kilobytes at a time."""
        ...

    def __len__(self) -> int: ...

    @property
    def sha256(self) -> str:
        """Of all of them, in hex."""
        ...


class LogFile(Pieces, Protocol):
    """A commit file of a log as it was found there, too large to be held in one piece."""

    def actions(self, *, strict: bool = False) -> Sequence[Action]:
        """Its actions, in order, as of `lines.decode_lines`. Raises
        `codec.InvalidActionError` or `commits.UnreadableCommit`."""
        ...


class LargeContent:
    """The log lines of actions, most of which keep their bytes elsewhere."""

    __slots__ = ("_actions", "_sha256", "_size")

    def __init__(self, actions: Sequence[Action]) -> None:
        """Goes through all of them once."""
        self._actions = actions
        self._size = 0
        sha = hashlib.sha256()
        for piece in self.pieces():
            sha.update(piece)
            self._size += len(piece)
        self._sha256 = sha.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """Each is of whole lines."""
        return pieces_of(self._actions)

    def __len__(self) -> int:
        return self._size

    @property
    def sha256(self) -> str:
        return self._sha256


Content = bytes | Pieces


def content_of(actions: Sequence[Action]) -> Content:
    """A commit file's content: one action a line, each line ended."""
    if any(isinstance(action, Spooled) for action in actions):
        return LargeContent(actions)
    return encode_lines(actions)


def whole(content: Content) -> bytes:
    """All bytes at once."""
    return content if isinstance(content, bytes) else b"".join(content.pieces())


def is_blank(content: Content) -> bool:
    """Whether there is white space only."""
    pieces = (content,) if isinstance(content, bytes) else content.pieces()
    return not any(piece.strip() for piece in pieces)


def is_same(content: Content, found: Content) -> bool:
    """Whether these are the bytes."""
    if isinstance(content, bytes) and isinstance(found, bytes):
        return content == found
    return len(content) == len(found) and sha256_of(content) == sha256_of(found)


def sha256_of(content: Content) -> str:
    """In hex."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    return content.sha256


def pieces_of(actions: Sequence[Action]) -> Iterator[bytes]:
    """The log lines of actions, each ended, many at a time."""
    at = 0
    while at < len(actions):
        first = actions[at]
        if isinstance(first, Spooled) and _is_whole(first, actions, at):
            at += first.source.count
            yield first.source.text()
            continue
        end = at + 1
        while end < len(actions) and end - at < _LINES_A_PIECE:
            action = actions[end]
            if isinstance(action, Spooled) and action.at == 0:
                break
            end += 1
        yield encode_lines(actions[at:end])
        at = end


def _is_whole(first: Spooled, actions: Sequence[Action], at: int) -> bool:
    """Whether all lines of the source come here, one after the other."""
    source = first.source
    if first.at or at + source.count > len(actions):
        return False
    run = actions[at : at + source.count]
    return all(
        isinstance(action, Spooled) and action.source is source and action.at == place
        for place, action in enumerate(run)
    )

"""Log lines to actions and back (PROTOCOL.md, "Actions"; one JSON object a line).

`decode` refuses what two readers could read differently (duplicate keys, NaN, numbers out of
range, invalid Unicode), because the bytes that are judged are the bytes that land.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from tidegate_protocol.actions import KINDS, Action, UnknownAction
from tidegate_protocol.text import excerpt

MAX_DEPTH = 64

Known = TypeVar("Known", bound=Struct)
"""One of the kinds of `actions.KINDS`."""


class InvalidActionError(ValueError):
    """A log line is not an action; the message says where and why."""


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(struct) for kind, struct in KINDS.items()
}
_KIND_OF: dict[type[Struct], str] = {struct: kind for kind, struct in KINDS.items()}
_ENVELOPE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()
# Sets have no order of their own, and equal actions must have equal bytes in every process.
_STABLE_ENCODER = msgspec.json.Encoder(order="deterministic")


def decode(line: bytes) -> Action:
    """One log line as an action with its raw bytes.

    Raises `InvalidActionError` for anything that is not exactly one JSON object holding one
    action, with the offending field where a known kind has the wrong shape.
    """
    raw = _one_line(line)
    _check_unambiguous(raw)
    try:
        envelope = _ENVELOPE.decode(raw)
    except msgspec.DecodeError as error:
        raise InvalidActionError(
            f"expected one JSON object of one action, found {excerpt(raw)}: {error}"
        ) from None
    if len(envelope) != 1:
        raise InvalidActionError(
            "expected an object with exactly one key, the kind of the action, "
            f"found {sorted(envelope)}"
        )
    ((kind, body),) = envelope.items()
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return UnknownAction(kind=kind, raw=raw)
    try:
        action = decoder.decode(body)
    except msgspec.DecodeError as error:
        raise InvalidActionError(f"in action {kind!r}: {error}") from None
    msgspec.structs.force_setattr(action, "raw", raw)
    return cast(Action, action)


def decode_lines(content: bytes) -> Iterator[Action]:
    """The actions of a commit file, in order; blank lines are passed over.

    Raises `InvalidActionError` that names the line, counted from 1.
    """
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield decode(line)
        except InvalidActionError as error:
            raise InvalidActionError(f"line {number}: {error}") from None


def encode(action: Action) -> bytes:
    """The action's log line without a newline: the bytes it came with, else made from its
    fields, absent where they are None."""
    if action.raw:
        return action.raw
    kind = _KIND_OF[type(action)]
    return _STABLE_ENCODER.encode({kind: _fields(action)})


def encode_lines(actions: Iterable[Action]) -> bytes:
    """A commit file's content: one action a line, each line ended."""
    return b"".join(encode(action) + b"\n" for action in actions)


def from_body(kind: type[Known], body: Mapping[str, Any]) -> Known:
    """The action of a kind with this body, as if it had come as a log line of its own.

    Raises `InvalidActionError`.
    """
    action = decode(_ENCODER.encode({_KIND_OF[kind]: body}))
    assert isinstance(action, kind)
    return action


def with_fields(action: Known, changes: Mapping[str, Any]) -> Known:
    """A copy of the action whose log line has the fields of `changes` (by their log names)
    set, or taken away where the value is None; every other field keeps its bytes."""
    kind = _KIND_OF[type(action)]
    envelope = _ENVELOPE.decode(encode(cast(Action, action)))
    fields: dict[str, Any] = dict(_ENVELOPE.decode(envelope[kind]))
    for name, value in changes.items():
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = value
    changed = decode(_ENCODER.encode({kind: fields}))
    assert isinstance(changed, type(action))
    return changed


def _fields(action: Struct) -> dict[str, Any]:
    values = msgspec.to_builtins(action)
    values.pop(" raw")
    return {name: value for name, value in values.items() if value is not None}


def _one_line(line: bytes) -> bytes:
    """JSON allows line breaks between tokens; a log line does not."""
    if b"\n" in line or b"\r" in line:
        line = line.translate(None, b"\r\n")
    return line.strip(b" \t")


def _check_unambiguous(raw: bytes) -> None:
    try:
        value = _ANY.decode(raw)
        again = _ENCODER.encode(value)
    except msgspec.DecodeError as error:
        raise InvalidActionError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise InvalidActionError(f"nested deeper than {MAX_DEPTH} levels") from None
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        _check_depth(value)
    if again != raw:
        # Compact JSON with distinct keys comes back as it was; only what does not is looked at
        # again by the slower parser, which shows every pair.
        try:
            json.loads(raw, object_pairs_hook=_distinct_pairs)
        except InvalidActionError:
            raise
        except (ValueError, RecursionError) as error:
            raise InvalidActionError(f"not valid JSON: {error}") from None


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise InvalidActionError(f"nested deeper than {MAX_DEPTH} levels")


def _distinct_pairs(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise InvalidActionError(f"the key {key!r} appears twice in one object")
        seen.add(key)

"""Log lines to actions and back (PROTOCOL.md, "Actions"; one JSON object a line).

`decode` refuses what two readers could read differently (see `strict_json`), because the bytes
that are checked are the bytes that land.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from tidegate_protocol.base import strict_json
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import KINDS, Action, CommitInfo, UnknownAction

Known = TypeVar("Known", bound=Struct)
"""One of the kinds of `actions.KINDS`."""


class InvalidActionError(ValueError):
    """A log line is not an action; the message says where and why."""


_KIND_OF: dict[type[Struct], str] = {struct: kind for kind, struct in KINDS.items()}
_ENVELOPE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODER = msgspec.json.Encoder()
_RAW = "raw"
_RAW_KEY = msgspec.structs.fields(CommitInfo)[-1].encode_name


def decode(line: bytes) -> Action:
    """One log line as an action with its raw bytes.

    JSON allows line breaks between tokens, a log line does not: those are taken out, and every
    other byte stays as it came. Raises `InvalidActionError` for anything that is not exactly one
    JSON object holding one action, with the offending field where a known kind has the wrong
    shape. Only commitInfo may hold anything (PROTOCOL.md, "Commit Provenance Information"): its
    fields of an unexpected type are None.
    """
    line = line.strip(b" \t\r\n")
    try:
        envelope = strict_json.decode(line)
    except strict_json.InvalidJson as error:
        raise InvalidActionError(str(error)) from None
    if not isinstance(envelope, dict) or len(envelope) != 1:
        raise InvalidActionError(
            "expected a JSON object with exactly one key, the kind of the action, "
            f"found {excerpt(line)}"
        )
    # Outside strings only, now that the line is known to be JSON: no token is changed by it.
    raw = line.translate(None, b"\r\n") if b"\n" in line or b"\r" in line else line
    ((kind, body),) = envelope.items()
    struct = KINDS.get(kind)
    if struct is None:
        return UnknownAction(kind=kind, raw=raw)
    if not isinstance(body, dict):
        raise InvalidActionError(f"in action {kind!r}: expected an object")
    body.pop(_RAW_KEY, None)
    try:
        action = msgspec.convert(body, struct)
    except msgspec.ValidationError as error:
        if struct is not CommitInfo:
            raise InvalidActionError(f"in action {kind!r}: {error}") from None
        action = _commit_info(body)
    msgspec.structs.force_setattr(action, _RAW, raw)
    return cast(Action, action)


def encode(action: Action) -> bytes:
    """The action's log line without a newline: the bytes it came with, else made from its
    fields, absent where they are None."""
    if action.raw:
        return action.raw
    kind = _KIND_OF[type(action)]
    return _ENCODER.encode({kind: _fields(action)})


def encode_lines(actions: Iterable[Action]) -> bytes:
    """A commit file's content: one action a line, each line ended."""
    return b"".join(encode(action) + b"\n" for action in actions)


def from_body(kind: type[Known], body: Mapping[str, Any]) -> Known:
    """The action of a kind with this body, as if it had come as a log line of its own.

    Raises `InvalidActionError`.
    """
    raw = _ENCODER.encode({_KIND_OF[kind]: body})
    action = _typed(kind, body, raw) or decode(raw)
    assert isinstance(action, kind)
    return action


def with_fields(action: Known, changes: Mapping[str, Any]) -> Known:
    """A copy of the action whose log line has the fields of `changes` (by their log names)
    set, or taken away where the value is None; every other field keeps its bytes."""
    # A spooled action is of a type of its own.
    kind = next(kind for kind, struct in KINDS.items() if isinstance(action, struct))
    envelope = _ENVELOPE.decode(encode(cast(Action, action)))
    fields: dict[str, Any] = dict(_ENVELOPE.decode(envelope[kind]))
    for name, value in changes.items():
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = value
    changed = decode(_ENCODER.encode({kind: fields}))
    assert isinstance(changed, KINDS[kind])
    return cast(Known, changed)


def _typed(kind: type[Known], body: Mapping[str, Any], raw: bytes) -> Known | None:
    """What `decode` makes of the raw bytes, which `body` was encoded to, without parsing them;
    None where it might refuse them. A mapping has its keys once, and a text made by the encoder
    is JSON: what is left to refuse is depth, NUL and a field of another type."""
    if b"\\u0000" in raw or raw.count(b"{") + raw.count(b"[") > strict_json.MAX_DEPTH:
        return None
    try:
        action = msgspec.convert(body, kind)
    except msgspec.ValidationError:
        return None
    msgspec.structs.force_setattr(action, _RAW, raw)
    return action


def _commit_info(body: dict[str, Any]) -> CommitInfo:
    known: dict[str, Any] = {}
    for field in msgspec.structs.fields(CommitInfo):
        try:
            known[field.name] = msgspec.convert(body.get(field.encode_name), field.type)
        except msgspec.ValidationError:
            continue
    return CommitInfo(**known)


def _fields(action: Struct) -> dict[str, Any]:
    # Sets have no order of their own, and the same action must make the same bytes everywhere.
    values = msgspec.to_builtins(action, order="deterministic")
    values.pop(_RAW_KEY)
    return {name: value for name, value in values.items() if value is not None}

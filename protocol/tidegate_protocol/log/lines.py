"""The lines of a log, whoever wrote them, as Delta's kernel reads them.

Other writers put lines into a log that `codec.decode` refuses and that readers take, such as
`{"add":{...},"remove":null}`. The `raw` of such an action is not the line in the log, but a line
that means the same and that `codec.decode` takes:

- A null is absent: an action, a known field of an action, a table property. Null partition values
  and tags stay. A line without an action is passed over.
- A line may hold several objects, and an object several actions. Beside an add, a remove is not
  read. Of two values of one key, the last one counts; a null that follows a value is refused.
- An integer may have a fraction, which is cut off, or be a text. A text may be a number or a
  Boolean, and may contain control characters other than NUL.
- What cannot be stored of a commitInfo becomes U+FFFD or null.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from tidegate_protocol.base import strict_json
from tidegate_protocol.log.actions import KINDS, Action, CommitInfo, Long, UnknownAction
from tidegate_protocol.log.codec import InvalidActionError, decode, with_fields


class _Number:
    """A JSON number as its text in the log."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Unreadable:
    """A value that the kernel refuses, or that its users read in two ways."""

    def __init__(self, what: str) -> None:
        self.what = what


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        hides = value is None and values.get(key) is not None
        values[key] = _Unreadable(f"null after another value of {key!r}") if hides else value
    return values


def _raw(value: object) -> msgspec.Raw:
    if isinstance(value, _Number):
        return msgspec.Raw(value.text.encode())
    assert isinstance(value, _Unreadable)
    raise ValueError(f"a value is {value.what}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_Unreadable,
    strict=False,
)
_ENCODER = msgspec.json.Encoder(enc_hook=_raw)
_ENVELOPE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LONG = inspect.type_info(Long)
_SHAPES = {kind: inspect.type_info(struct) for kind, struct in KINDS.items()}

_COMMIT_INFO = "commitInfo"
_NO_INFORMATION = b'{"commitInfo":{}}'
_VALUE = re.compile(r"[^ \t\r\n]")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
# Postgres' texts have no NUL, and UTF-8 no half of a pair of surrogates.
_NOT_STORED = re.compile("[\0\ud800-\udfff]")


def decode_lines(content: bytes, *, first: int = 1, strict: bool = False) -> Iterator[Action]:
    """The actions of a commit file, in order; blank lines are passed over. With `strict`, each line
    is an action of `codec.decode`.

    Raises `InvalidActionError` that names the line, counted from `first`.
    """
    for number, line in enumerate(content.split(b"\n"), start=first):
        if not line.strip():
            continue
        try:
            yield from decode_line(line, strict=strict)
        except InvalidActionError as error:
            raise InvalidActionError(f"line {number}: {error}") from None


def decode_line(line: bytes, *, strict: bool = False) -> list[Action]:
    """The actions of a line, as of `decode_lines`: mostly one. Raises `InvalidActionError`."""
    if strict:
        return [decode(line)]
    try:
        action = decode(line)
    except InvalidActionError as refused:
        return [action for value in _values(line, refused) for action in _actions(value)]
    return _as_read(action)


def _as_read(action: Action) -> list[Action]:
    """What the kernel reads in an action of `codec.decode`."""
    match action:
        case UnknownAction(kind=kind, raw=raw) if bytes(_ENVELOPE.decode(raw)[kind]) == b"null":
            return []
        case CommitInfo(in_commit_timestamp=None, raw=raw) if b'"inCommitTimestamp"' in raw:
            fields = _ENVELOPE.decode(_ENVELOPE.decode(raw)[_COMMIT_INFO])
            text = bytes(fields.get("inCommitTimestamp", b"null")).decode()
            time = _shaped(_DECODER.decode(text), _LONG)
            if type(time) is int:
                action = with_fields(action, {"inCommitTimestamp": time})
            return [action]
        case _:
            return [action]


def _values(line: bytes, refused: InvalidActionError) -> Iterator[dict[str, Any]]:
    """The JSON objects of a line. Raises `refused` where something else is there."""
    if (
        strict_json.containers(line) > strict_json.MAX_CONTAINERS
        or line.count(b",") > strict_json.MAX_VALUES
    ):
        raise refused
    text = line.decode("utf-8", "surrogateescape")
    at = 0
    while begin := _VALUE.search(text, at):
        try:
            value, at = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            raise refused from None
        if not isinstance(value, dict):
            raise refused
        yield value


def _actions(bodies: dict[str, Any]) -> Iterator[Action]:
    """The actions of one JSON object."""
    bodies = {kind: body for kind, body in bodies.items() if body is not None}
    if "add" in bodies:
        bodies.pop("remove", None)
    for kind, body in bodies.items():
        if kind == _COMMIT_INFO:
            yield from _as_read(_information(body))
            continue
        shape = _SHAPES.get(kind)
        try:
            raw = _ENCODER.encode({kind: body if shape is None else _shaped(body, shape)})
        except (ValueError, RecursionError) as error:
            raise InvalidActionError(f"in action {kind!r}: {error}") from None
        yield decode(raw)


def _information(body: object) -> Action:
    stored = _stored(body, strict_json.MAX_DEPTH - 1)
    try:
        return decode(_ENCODER.encode({_COMMIT_INFO: stored if isinstance(stored, dict) else {}}))
    except InvalidActionError:
        # Escaped braces and commas count only now.
        return decode(_NO_INFORMATION)


def _stored(value: object, depth: int) -> object:
    """The value without what cannot be stored; null below so many levels."""
    match value:
        case str():
            return _NOT_STORED.sub("\ufffd", value)
        case _Number():
            return value if math.isfinite(float(value.text)) else None
        case dict() | list() if not depth:
            return None
        case dict():
            return {
                _NOT_STORED.sub("\ufffd", name): _stored(each, depth - 1)
                for name, each in value.items()
            }
        case list():
            return [_stored(each, depth - 1) for each in value]
        case _Unreadable():
            return None
        case _:
            return value


def _shaped(value: object, shape: inspect.Type) -> object:
    """The value as one of a type of `actions`; as it is where it cannot be one."""
    match shape, value:
        case inspect.UnionType(types=types), _ if value is not None:
            return _shaped(value, types[0])
        case inspect.IntType(), (_Number(text=text) | str(text)) if _INTEGER.fullmatch(text):
            return int(text)
        case inspect.IntType(), _Number(text=text) if abs(float(text)) < 2**63:
            return int(float(text))
        case inspect.StrType(), _Number(text=text):
            return text
        case inspect.StrType(), bool():
            return "true" if value else "false"
        case inspect.StructType(fields=fields), dict():
            known = {field.encode_name: field.type for field in fields}
            return {
                name: _shaped(each, known[name]) if name in known else each
                for name, each in value.items()
                if each is not None or name not in known
            }
        case inspect.DictType(value_type=of_values), dict():
            return {
                name: _shaped(each, of_values)
                for name, each in value.items()
                if each is not None or not isinstance(of_values, inspect.StrType)
            }
        case ((inspect.FrozenSetType() | inspect.VarTupleType()), list()):
            return [_shaped(each, shape.item_type) for each in value]
        case _:
            return value

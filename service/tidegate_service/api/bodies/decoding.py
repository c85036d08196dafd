"""JSON bodies to values, refusing what two readers could read differently.

msgspec types a body and says where it is wrong; `strict_json` then refuses what msgspec lets
pass, in everything but the actions. Those go through `tidegate_protocol.codec`, as strictly.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import msgspec
from fastapi import Request

from tidegate_protocol import codec, strict_json
from tidegate_protocol.actions import Action
from tidegate_protocol.problems import Code
from tidegate_protocol.text import EXCERPT, excerpt
from tidegate_service.api.problems import BadRequest, BodyError
from tidegate_service.api.requests import NDJSON, max_body_bytes_of
from tidegate_service.api.streaming import OFF_LOOP_BYTES, WholeBody, read_into, short_body
from tidegate_service.core.errors import Refused

T = TypeVar("T")

MAX_ACTION_BYTES = 4 * 1024 * 1024
"""Largest single action, as a line of its own or as an element of `actions`."""
MAX_ACTIONS = 250_000
"""Of one JSON body. The largest one holds fewer of any real ones; a million empty objects would
be a gigabyte of memory."""
MAX_ENVELOPE_BYTES = 4 * 1024 * 1024
"""Largest body without its actions: the first line of NDJSON is a line like the others."""
MAX_ENVELOPE_DEPTH = 32
"""Leaves room below `strict_json.MAX_DEPTH` for what a commitInfo wraps around it."""


class _OnlyActions(msgspec.Struct):
    """Passes over every other field without making it."""

    actions: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b""))


_ONLY_ACTIONS = msgspec.json.Decoder(_OnlyActions)
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ACTIONS_KEY = re.compile(rb'"actions"\s*:\s*')
_PLACE = re.compile(r" - at `(\$.*)`\Z")
_KEY = re.compile(r" - at `key` in `(\$.*)`\Z")
_PATH_PART = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")
_UNKNOWN_FIELD = re.compile(r"\AObject contains unknown field `(.*)`\Z", re.DOTALL)


async def read_body(request: Request, decode: Callable[[bytes], T]) -> T:
    """The request's body through `decode`, which runs in a thread where it would take long."""
    short = await short_body(request)
    if short is not None:
        return decode(short)
    reader = WholeBody()
    await read_into(reader, request, max_bytes=max_body_bytes_of(request))
    body = reader.whole()
    if len(body) < OFF_LOOP_BYTES:
        return decode(body)
    return await asyncio.to_thread(decode, body)


def decode_envelope(
    body: bytes,
    decoder: msgspec.json.Decoder[T],
    *,
    actions: Callable[[T], msgspec.Raw] | None = None,
) -> T:
    """A whole JSON body (or an NDJSON body's first line) as a typed value.

    `actions` gives the array that `decode_array` reads. Raises `BadRequest`, and `Refused`
    (`too-large`).
    """
    if len(body) > MAX_ENVELOPE_BYTES:
        # Looked at before any value is made: a megabyte of empty arrays is twenty in memory.
        _check_envelope_size(body, with_actions=actions is not None)
    value = _decoded(body, decoder)
    rest = body if actions is None else _without(body, bytes(actions(value)))
    try:
        strict_json.decode(rest, max_depth=MAX_ENVELOPE_DEPTH)
    except strict_json.InvalidJson as error:
        _refuse("", str(error))
    return value


def lines_of(array: msgspec.Raw) -> list[bytes]:
    """The elements of a JSON body's array of actions. Raises `BadRequest` where it is none, and
    `Refused` for more than `MAX_ACTIONS`."""
    try:
        lines = _ARRAY.decode(array)
    except msgspec.ValidationError:
        _refuse("/actions", "expected an array of actions")
    if len(lines) > MAX_ACTIONS:
        raise Refused(
            f"there are {len(lines)} actions; at most {MAX_ACTIONS} are taken in a JSON body",
            code=Code.TOO_LARGE,
            hint=f"send them as {NDJSON}, or split the work into several transactions",
        )
    return [bytes(line) for line in lines]


def decode_actions(lines: Sequence[bytes], *, first: int = 0) -> tuple[Action, ...]:
    """Actions by `codec.decode`, counted from `first`. Raises `BadRequest` (`invalid-action`) that
    points at the first one that is none, and `Refused` (`too-large`)."""
    actions = []
    for index, line in enumerate(lines, start=first):
        if len(line) > MAX_ACTION_BYTES:
            raise Refused(
                f"/actions/{index} has {len(line)} bytes; at most {MAX_ACTION_BYTES} are taken",
                code=Code.TOO_LARGE,
            )
        try:
            actions.append(codec.decode(line))
        except codec.InvalidActionError as error:
            where = f"/actions/{index}{_pointer_in_action(line, str(error))}"
            raise BadRequest(
                [BodyError(where=where, why=str(error))], code=Code.INVALID_ACTION
            ) from None
    return tuple(actions)


def _decoded(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        _refuse_shape(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _refuse("", f"not valid JSON in UTF-8: {error}")
    except RecursionError:
        _refuse("", f"nested deeper than {MAX_ENVELOPE_DEPTH} levels")


def _check_envelope_size(body: bytes, *, with_actions: bool) -> None:
    actions = len(bytes(_decoded(body, _ONLY_ACTIONS).actions)) if with_actions else 0
    if len(body) - actions > MAX_ENVELOPE_BYTES:
        raise Refused(
            f"the body has {len(body) - actions} bytes beside its actions; at most "
            f"{MAX_ENVELOPE_BYTES} are taken",
            code=Code.TOO_LARGE,
            hint="name what was read by predicates instead of files",
        )


def _without(body: bytes, array: bytes) -> bytes:
    """The body with its array of actions blanked: it is most of the body, and each action is
    checked by itself. Where the key is spelt with escapes, nothing is blanked."""
    for key in _ACTIONS_KEY.finditer(body):
        if body.startswith(array, key.end()):
            return body[: key.end()] + b"null" + body[key.end() + len(array) :]
    return body


def _refuse_shape(message: str) -> NoReturn:
    """msgspec's message, its path turned into a JSON Pointer."""
    key = _KEY.search(message)
    place = key or _PLACE.search(message)
    where = "" if place is None else _pointer(place.group(1))
    why = message if place is None else message[: place.start()]
    unknown = _UNKNOWN_FIELD.match(why)
    if unknown is not None:
        where = f"{where}/{_escaped(unknown.group(1))}"
        why = f"there is no field {excerpt(unknown.group(1))} here"
    _refuse(where, f"{why} (in a key)" if key else why)


def _pointer_in_action(line: bytes, message: str) -> str:
    """Where in the action, if the codec's message says it."""
    try:
        kind = next(iter(msgspec.json.decode(line, type=dict[str, msgspec.Raw])), None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    place = _PLACE.search(message)
    if kind is None or not message.startswith("in action "):
        return ""
    return f"/{_escaped(kind)}" + ("" if place is None else _pointer(place.group(1)))


def _pointer(path: str) -> str:
    """`$.reads.predicates[0]` as `/reads/predicates/0`; msgspec writes `[...]` for any key."""
    parts = [name or index for name, index in _PATH_PART.findall(path.removeprefix("$"))]
    return "".join(f"/{'*' if part == '...' else _escaped(part)}" for part in parts)


def _escaped(name: str) -> str:
    """A key as part of a JSON Pointer. What is no plain text is shown as `excerpt` shows it:
    the answer goes to terminals and logs."""
    shown = name if len(name) <= EXCERPT and name.isprintable() else excerpt(name)
    return shown.replace("~", "~0").replace("/", "~1")


def _refuse(where: str, why: str) -> NoReturn:
    raise BadRequest([BodyError(where=where, why=why)])

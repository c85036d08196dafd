"""JSON bodies to values, refusing what two readers could read differently.

msgspec types a body and says where it is wrong; `strict_json` then refuses what msgspec lets
pass, in everything but the actions. Those go through `tidegate_protocol.log.codec`, as strictly.
"""

import re
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn, TypeVar

import msgspec
from fastapi import Request

from tidegate_protocol.base import strict_json
from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import EXCERPT, excerpt
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import Action
from tidegate_service.api.bodies.streaming import (
    ON_LOOP_BYTES,
    WholeBody,
    is_quick,
    read_into,
    reservation_of,
    short_body,
)
from tidegate_service.api.http.problems.problems import BadRequest, BodyError
from tidegate_service.api.http.request.requests import (
    NDJSON,
    body_threads_of,
    gate_of,
    max_body_bytes_of,
    state_of,
)
from tidegate_service.core.errors import Refused

T = TypeVar("T")

MAX_ACTION_BYTES = 4 * 1024 * 1024
"""Largest single action, as a line of its own or as an element of `actions`."""
MAX_ACTIONS = 250_000
"""Of one JSON body. The largest one holds fewer of any real ones."""
MAX_ENVELOPE_BYTES = 4 * 1024 * 1024
"""Largest body without its actions: the first line of NDJSON is a line like the others."""
MAX_ENVELOPE_DEPTH = 32
"""Leaves room below `strict_json.MAX_DEPTH` for what a commitInfo wraps around it."""


MAX_VALUES_BESIDE = 100_000
"""Values of a body without its actions: what is made of so many at once takes some hundredths of a
second, in which nothing else is done. The definition of ten thousand columns has fewer."""
_ACTION_BYTES = 640
_CONTAINER_BYTES = 400
_ENVELOPE_TIMES = 24
# What becomes of a body, at most: of each of its actions, and of the rest, which is there as what
# it says and as plain JSON.


class _OnlyActions(msgspec.Struct):
    """Passes over every other field without making it."""

    actions: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b""))


class _TooMany(Exception):
    """More actions than are taken."""


class _Left(threading.local):
    actions = 0


_LEFT = _Left()


class _Counted(msgspec.Struct, gc=False):
    """An element of the array, of which nothing is made."""

    def __post_init__(self) -> None:
        _LEFT.actions -= 1
        if _LEFT.actions < 0:
            raise _TooMany


_COUNTED = msgspec.json.Decoder(list[_Counted])
_ONLY_ACTIONS = msgspec.json.Decoder(_OnlyActions)
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ACTIONS_KEY = re.compile(rb'"actions"\s*:\s*')
# Possessive: nothing is kept to come back to, which took sixty bytes for each escape. A text that
# is not closed goes to the end: else it would be looked for again from each quote in it.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_PLACE = " - at `"
_IN_KEY = "key` in `"
_MAX_PLACE = 1_000
"""What is longer is no path of msgspec's, which names fields of bodies."""
_PATH_PART = re.compile(r"\.([^.\[]++)|\[([^\[\]]*+)\]")
_UNKNOWN_FIELD = re.compile(r"\AObject contains unknown field `(.*)`\Z", re.DOTALL)


async def read_body(request: Request, decode: Callable[[bytes], T]) -> T:
    """The request's body through `decode`, which runs in a thread where it would take long."""
    body = await short_body(request)
    reservation = None
    if body is None:
        reader = WholeBody()
        reservation = await read_into(reader, request, max_bytes=max_body_bytes_of(request))
        body = reader.whole()
    if is_quick(body):
        await gate_of(request).begin(state_of(request))
        return decode(body)
    threads = body_threads_of(request)
    reservation = reservation or reservation_of(request)
    reservation.grow(await threads.run(_memory_of, body))
    return await threads.run(decode, body)


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
    if actions is None:
        # Looked at before any value is made: a megabyte of empty arrays is fifty in memory. Of a
        # body with actions, `read_body` has seen to it.
        _check_rest(len(body))
        _check_values(body)
    value = _decoded(body, decoder)
    rest = body if actions is None else _without(body, bytes(actions(value)))
    try:
        strict_json.decode(rest, max_depth=MAX_ENVELOPE_DEPTH)
    except strict_json.InvalidJson as error:
        _refuse("", str(error))
    return value


def lines_of(array: msgspec.Raw) -> list[bytes]:
    """The elements of a JSON body's array of actions. Raises `BadRequest` where it is none, or an
    element is no object, and `Refused` for more than `MAX_ACTIONS`."""
    _count(array)
    return [bytes(line) for line in _ARRAY.decode(array)]


def _count(array: msgspec.Raw) -> int:
    """How many actions there are, found before any is made. Raises as `lines_of`."""
    _LEFT.actions = MAX_ACTIONS
    try:
        return len(_COUNTED.decode(array))
    except _TooMany:
        raise Refused(
            f"there are more than {MAX_ACTIONS} actions, which is as many as are taken in a JSON "
            "body",
            code=Code.TOO_LARGE,
            hint=f"send them as {NDJSON}, or split the work into several transactions",
        ) from None
    except msgspec.ValidationError as error:
        where = _pointer(_parsed(str(error)).path)
        if not where:
            _refuse("/actions", "expected an array of actions")
        why = "expected a JSON object with exactly one key, the kind of the action"
        raise BadRequest(
            [BodyError(where=f"/actions{where}", why=why)], code=Code.INVALID_ACTION
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _refuse("", f"not valid JSON in UTF-8: {error}")
    except RecursionError:
        _refuse("", f"nested deeper than {MAX_ENVELOPE_DEPTH} levels")


def _memory_of(body: bytes) -> int:
    """What the body and what it becomes take in memory, in bytes, at most. No value of it is made.
    Raises `BadRequest` and `Refused`, as `decode_envelope` and `lines_of` would."""
    array = _decoded(body, _ONLY_ACTIONS).actions
    text = memoryview(array)
    rest = len(body) - len(text)
    _check_rest(rest)
    containers = strict_json.containers(body) - strict_json.containers(bytes(text))
    if rest > ON_LOOP_BYTES:
        _check_values(_without(body, bytes(text)) if text else body)
    return (
        2 * len(body)
        + _ENVELOPE_TIMES * rest
        + _CONTAINER_BYTES * containers
        + (_ACTION_BYTES * _count(array) if text else 0)
    )


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


def _check_rest(size: int) -> None:
    if size > MAX_ENVELOPE_BYTES:
        raise Refused(
            f"the body has {size} bytes beside its actions; at most {MAX_ENVELOPE_BYTES} are taken",
            code=Code.TOO_LARGE,
            hint="name what was read by predicates instead of files",
        )


def _check_values(rest: bytes) -> None:
    """Of a body without its actions. Commas in texts, as in long predicates, are none between
    values."""
    found = rest.count(b",") + strict_json.containers(rest)
    if found > MAX_VALUES_BESIDE:
        found -= sum(_in_text(text) for text in _TEXT.findall(rest))
    if found > MAX_VALUES_BESIDE:
        raise Refused(
            f"the body has more than {MAX_VALUES_BESIDE} values beside its actions, which is as "
            "many as are taken",
            code=Code.TOO_LARGE,
            hint="name what was read by predicates instead of files",
        )


def _in_text(text: bytes) -> int:
    return text.count(b",") + strict_json.containers(text)


def _without(body: bytes, array: bytes) -> bytes:
    """The body with its array of actions blanked: it is most of the body, and each action is
    checked by itself. Where the key is spelt with escapes, nothing is blanked, and what is long
    is refused."""
    for key in _ACTIONS_KEY.finditer(body):
        if body.startswith(array, key.end()):
            return body[: key.end()] + b"null" + body[key.end() + len(array) :]
    if len(body) > MAX_ENVELOPE_BYTES:
        _refuse("/actions", "expected the key as it is, without escapes, in a body of this length")
    return body


def _refuse_shape(message: str) -> NoReturn:
    """msgspec's message, its path turned into a JSON Pointer."""
    why, path, in_key = _parsed(message)
    where = _pointer(path)
    unknown = _UNKNOWN_FIELD.match(why)
    if unknown is not None:
        where = f"{where}/{_escaped(unknown.group(1))}"
        why = f"there is no field {excerpt(unknown.group(1))} here"
    _refuse(where, f"{why} (in a key)" if in_key else why)


class _Message(NamedTuple):
    """A message of msgspec's, its path (empty if it has none), and whether a key there is meant."""

    why: str
    path: str
    in_key: bool


def _parsed(message: str) -> _Message:
    """The parts of a message. Found without a regular expression: the message may quote a key of
    any length, and with any text."""
    why, mark, path = message.rpartition(_PLACE)
    in_key = path.startswith(_IN_KEY)
    path = path.removeprefix(_IN_KEY)
    is_place = path.startswith("$") and path.endswith("`") and "\n" not in path
    if not mark or not is_place or len(path) > _MAX_PLACE:
        return _Message(message, "", in_key=False)
    return _Message(why, path[:-1], in_key)


def _pointer_in_action(line: bytes, message: str) -> str:
    """Where in the action, if the codec's message says it."""
    try:
        kind = next(iter(msgspec.json.decode(line, type=dict[str, msgspec.Raw])), None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    if kind is None or not message.startswith("in action "):
        return ""
    return f"/{_escaped(kind)}{_pointer(_parsed(message).path)}"


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

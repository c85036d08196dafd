"""What holds of any bytes that are given to the readers of log lines, commits and predicates.

Each check takes one input and fails by an exception: one that is not documented, or an assertion.
"""

import json
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from pydantic_core import from_json

from tests.spark.predicates.values import schema_string
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import KINDS, Action, Add, CommitInfo, Remove, UnknownAction
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.codec import InvalidActionError
from tidegate_protocol.log.statistics import (
    FileStatistics,
    InvalidStatistics,
    is_statistics,
    statistics_of,
)
from tidegate_protocol.replay.commits import (
    MAX_TIMESTAMP,
    UnreadableCommit,
    body_digest,
    parse_commit,
    summarize,
    timestamp_of,
)
from tidegate_protocol.replay.foreign import committed_ms, parse_foreign_commit
from tidegate_protocol.scan.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.schema.table_schema import parse_schema

SLOW_S, SLOW_S_PER_BYTE = 0.5, 0.0005
"""CPU time that an input may take, at most: a hundred times what is usual."""
MANY, MORE = 8, 4
"""How often an input is repeated to see how time grows, and by how much it is longer then."""
T = TypeVar("T")
GROWTH_ASKED_OF = 64
"""One predicate in so many: the longer ones take as long as all the others."""
_ADDED = "x-added"


def check_action(data: bytes) -> None:
    """A log line: refused, or an action that keeps its bytes and that everybody reads alike."""
    action = _within_time(len(data), lambda: _decoded(data))
    if b"\n" not in data:
        many = BulkDecoder(_Kept).decode(data + b"\n")
        if many is not None:
            assert action is not None, "many lines at once are stricter than one line"
            assert [_public(one) for one in many] == [_public(action)]
    if action is None:
        return
    raw = codec.encode(action)
    assert raw == data.strip(b" \t\r\n").translate(None, b"\r\n")
    assert codec.decode(raw) == action
    _check_readers(raw)
    if isinstance(action, UnknownAction):
        return
    _check_fields(action, raw)
    if isinstance(action, Add):
        _check_statistics(action)


def check_commit(data: bytes) -> None:
    """A commit file: unreadable, or actions that are written and read again as they are."""
    try:
        actions = _within_time(len(data), lambda: parse_commit(data))
    except UnreadableCommit:
        return
    # A commit without actions is a file with a line, too.
    written = codec.encode_lines(actions) or b"{}"
    assert parse_commit(written) == actions
    assert codec.encode_lines(parse_commit(written)) == codec.encode_lines(actions)
    winner = summarize(1, actions, timestamp=1)
    assert 0 <= timestamp_of(1, actions, fallback=1) <= MAX_TIMESTAMP + 1
    if winner.commit_info is not None:
        body_digest(winner.commit_info)
    try:
        parse_foreign_commit(data)
        dated = committed_ms(1, actions, before=None, modified_ms=2**62)
    except UnreadableCommit:
        return
    assert 0 <= dated <= MAX_TIMESTAMP + 1


def check_predicate(data: bytes) -> None:
    """A predicate: refused, or judged, and then some outcome is possible for every file."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return
    parsed = _within_time(len(data), lambda: _parsed(text))
    if parsed is None:
        return
    opposites = [_parsed(f"NOT ({text})"), _parsed(f"({text}) IS NULL")]
    for partition, stats in _FILES:
        by_partition = parsed.matches_partition(partition)
        by_file = parsed.may_match(partition, stats)
        assert by_partition or not by_file, "a file may match in a partition that may not"
        if None not in opposites:
            others = [other.may_match(partition, stats) for other in opposites if other]
            assert by_file or any(others), "neither true, nor false, nor null"
    if zlib.crc32(data) % GROWTH_ASKED_OF == 0:
        _check_growth(text)


CHECKS: dict[str, Callable[[bytes], None]] = {
    "actions": check_action,
    "commits": check_commit,
    "predicates": check_predicate,
}

SCHEMA = parse_schema(schema_string())
PARTITIONED_BY = tuple(field.name for field in SCHEMA.fields if field.name.startswith("p_"))


@dataclass(frozen=True, slots=True)
class _Kept:
    """Lines that are kept as they are."""

    content: bytes

    @property
    def count(self) -> int:
        return self.content.count(b"\n")

    @property
    def size(self) -> int:
        return len(self.content)

    def lines(self) -> list[bytes]:
        return self.content.split(b"\n")[:-1]

    def text(self) -> bytes:
        return self.content


_KNOWN: dict[str, str | None] = {
    "p_byte": "1",
    "p_short": "-1",
    "p_integer": "20240131",
    "p_long": "9007199254740993",
    "p_float": "0.1",
    "p_double": "NaN",
    "p_small_decimal": "1.00",
    "p_large_decimal": "0.1000000000",
    "p_boolean": "true",
    "p_string": "2024-01-31",
    "p_date": "2024-03-31",
    "p_timestamp": "2024-03-31 01:00:00",
    "p_timestamp_ntz": "9999-12-31 23:59:59.999999",
    "p_binary": "a",
}
_STATISTICS = FileStatistics.parse(
    '{"numRecords":3,"minValues":{"d_integer":1,"d_string":"a","d_double":-1.5},'
    '"maxValues":{"d_integer":3,"d_string":"b"},"nullCount":{"d_integer":0,"d_string":1}}'
)
_FILES = [
    (_KNOWN, _STATISTICS),
    (dict.fromkeys(PARTITIONED_BY), None),
    ({}, None),
]


def _decoded(line: bytes) -> Action | None:
    try:
        return codec.decode(line)
    except InvalidActionError:
        return None


def _parsed(text: str) -> Predicate | None:
    try:
        return parse_predicate(text, SCHEMA, PARTITIONED_BY)
    except InvalidPredicate:
        return None


def _within_time(size: int, read: Callable[[], T]) -> T:
    allowed = SLOW_S + size * SLOW_S_PER_BYTE
    for _ in range(3):
        began = time.thread_time()
        result = read()
        if time.thread_time() - began <= allowed:
            return result
    raise AssertionError(f"{size} bytes took more than {allowed} s")


def _check_growth(text: str) -> None:
    """The predicate many times over, and that several times: as much longer, no more."""

    def taken(times: int) -> float:
        longer = " AND ".join([f"({text})"] * times)
        began = time.thread_time()
        _parsed(longer)
        return time.thread_time() - began

    short, long = taken(MANY), taken(MANY * MORE)
    if long > 0.2 and long > 3 * MORE * short:
        assert min(taken(MANY * MORE) for _ in range(3)) <= 3 * MORE * max(
            taken(MANY) for _ in range(3)
        ), "time grows faster than the text"


def _check_readers(raw: bytes) -> None:
    """Three readers of JSON, which have nothing in common, find the same, and no key twice."""
    first: object = msgspec.json.decode(raw)
    others = (
        json.loads(raw, parse_constant=_refused, object_pairs_hook=_distinct),
        from_json(raw, allow_inf_nan=False),
    )
    for other in others:
        assert _same(first, other), (first, other)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key appears twice among {[key for key, _ in pairs]}"
    return found


def _refused(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return float(one) == float(other)
    return type(one) is type(other) and one == other


def _public(action: Action) -> dict[str, object]:
    """The kind and the fields, without the bytes."""
    if isinstance(action, UnknownAction):
        return {"kind": action.kind}
    kind = next(name for name, struct in KINDS.items() if isinstance(action, struct))
    fields = msgspec.structs.fields(KINDS[kind])
    return {"kind": kind, **{f.name: getattr(action, f.name) for f in fields if f.name != "raw"}}


def _check_fields(action: Action, raw: bytes) -> None:
    """The fields say what the bytes say, and make bytes that say the same."""
    ((kind, body),) = json.loads(raw).items()
    known = msgspec.structs.fields(KINDS[kind])
    if not isinstance(action, CommitInfo):
        values = msgspec.json.decode(msgspec.json.encode(action))
        for field in known:
            if field.name != "raw" and body.get(field.encode_name) is not None:
                said, found = body[field.encode_name], values[field.encode_name]
                assert _covers(said, found), (field.name, said, found)
    made = msgspec.structs.replace(action, raw=b"")
    assert _public(codec.decode(codec.encode(made))) == _public(action)
    changed = json.loads(codec.encode(codec.with_fields(action, {_ADDED: 1})))[kind]
    assert {name: value for name, value in changed.items() if name != _ADDED} == {
        name: value for name, value in body.items() if name != _ADDED
    }
    if isinstance(action, Add | Remove):
        assert action.path == body["path"]


def _covers(said: object, found: object) -> bool:
    """Whether what was found is what was said, but for fields that are not known and sets."""
    if isinstance(said, dict) and isinstance(found, dict):
        return all(_covers(said.get(key), value) for key, value in found.items())
    if isinstance(said, list) and isinstance(found, list):
        return set(map(repr, said)) == set(map(repr, found))
    return found is None or _same(said, found)


def _check_statistics(add: Add) -> None:
    """The quick look and the whole one agree, and what cannot be read proves nothing."""
    if add.stats is None:
        return
    found = statistics_of(add.stats)
    try:
        FileStatistics.parse(add.stats)
    except InvalidStatistics:
        assert found is None
        assert not is_statistics(add.stats)
    else:
        assert found is not None

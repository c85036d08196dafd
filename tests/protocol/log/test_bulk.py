"""Lines decoded at once are what they are one by one, or are left to that."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.base import strict_json
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import Action, Add, Remove
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.codec import InvalidActionError
from tidegate_protocol.log.content import (
    LargeContent,
    content_of,
    is_same,
    pieces_of,
    sha256_of,
    whole,
)
from tidegate_protocol.log.paths import InvalidPath, check
from tidegate_protocol.log.spooled import Spooled, SpooledAdd
from tidegate_protocol.log.statistics import FileStatistics, InvalidStatistics, is_statistics
from tidegate_protocol.prepare.files import check_duplicates


class Held:
    """Lines in memory."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.count = text.count(b"\n")
        self.size = len(text)

    def lines(self) -> list[bytes]:
        return self._text.split(b"\n")[:-1]

    def text(self) -> bytes:
        return self._text


def add_line(path: str = "p=1/a", separators: tuple[str, str] = (",", ":"), **fields) -> bytes:
    body = {
        "path": path,
        "partitionValues": {"p": "1"},
        "size": 3,
        "modificationTime": 4,
        "dataChange": True,
        "stats": '{"numRecords":2,"minValues":{"x":1}}',
        **fields,
    }
    return json.dumps({"add": body}, separators=separators).encode()


def remove_line(path: str = "p=1/a") -> bytes:
    body = {"path": path, "dataChange": True, "deletionTimestamp": 7, "size": 3}
    return json.dumps({"remove": body}, separators=(",", ":")).encode()


ODD = {
    "a line of another kind": b'{"txn":{"appId":"a","version":1}}',
    "an unknown kind": b'{"future":{"x":1}}',
    "an unknown field": add_line(ofNobody={"x": [1, None]}),
    "spaces": add_line(separators=(", ", ": ")),
    "nulls": add_line(tags=None, baseRowId=None, clusteringProvider=None),
    "escapes": add_line(path="p=\u00fc/\u20ac"),
    "percent": add_line(path="p=%201/a"),
    "a hidden file": add_line(path=".hidden/_x"),
    "a newline in a path": add_line(path="p=1/a\nb"),
    "an absolute path": add_line(path="/x"),
    "no bytes": add_line(size=0),
    "no statistics": add_line(stats=None),
    "bad statistics": add_line(stats="{"),
    "negative rows": add_line(stats='{"numRecords":-1}'),
    "tags": add_line(tags={"a": "b", "c": None}),
    "a deletion vector": add_line(
        deletionVector={
            "storageType": "i",
            "pathOrInlineDv": "x",
            "sizeInBytes": 1,
            "cardinality": 1,
        }
    ),
    "a removal": remove_line("p=1/b"),
    "a removal of the log": remove_line("_delta_log/x"),
}
REFUSED = {
    "a key twice": b'{"add":{"path":"a","path":"b"}}',
    "a partition twice": add_line().replace(b'{"p":"1"}', b'{"p":"1","p":"1"}'),
    "two kinds": add_line()[:-1] + b"," + remove_line()[1:],
    "two values": add_line() + b" " + add_line("p=1/x"),
    "NUL": add_line(path="a\0"),
    "a lone surrogate": add_line(path="\ud800"),
    "no JSON": b'{"add":',
    "no object": b"[]",
    "nothing": b"{}",
    "a null": b'{"add":null}',
    "a wrong type": add_line(size="3"),
    "a float": add_line(size=3.0),
    "a huge number": add_line(size=2**63),
    "bytes that are no text": b'{"add":{"path":"\xff"}}',
    "depth": b'{"future":' + b"[" * 70 + b"]" * 70 + b"}",
    "a value over two lines": add_line().replace(b'"size"', b'\n"size"'),
}


def decoded(lines: list[bytes]) -> list[Action] | None:
    return BulkDecoder(Held).decode(b"".join(line + b"\n" for line in lines))


def as_if_alone(found: list[Action], lines: list[bytes]) -> None:
    assert len(found) == len(lines)
    for action, line in zip(found, lines, strict=True):
        alone = codec.decode(line)
        assert codec.encode(action) == codec.encode(alone)
        assert isinstance(action, type(alone))
        names = [n for n in alone.__struct_fields__ if n != "raw"]
        assert [getattr(action, n) for n in names] == [getattr(alone, n) for n in names]


@pytest.mark.parametrize("name", ODD)
def test_what_is_taken_is_as_if_it_came_alone(name):
    lines = [add_line(f"p=1/{n}") for n in range(5)]
    lines.insert(3, ODD[name])
    found = decoded(lines)
    if found is not None:
        as_if_alone(found, lines)
    kept = BulkDecoder(Held).keep([codec.decode(line) for line in lines])
    as_if_alone(kept, [codec.decode(line).raw for line in lines])


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_codec_refuses_is_left_to_it(name):
    first_line = REFUSED[name].split(b"\n")[0]
    with pytest.raises(InvalidActionError):
        codec.decode(first_line)
    assert decoded([add_line("p=1/x"), REFUSED[name], add_line("p=1/y")]) is None


def test_the_usual_forms_are_taken():
    for line in (add_line(), remove_line(), ODD["nulls"], ODD["an unknown field"], ODD["tags"]):
        found = decoded([line] * 3)
        assert found is not None
        assert all(isinstance(action, Spooled) for action in found)


def test_a_spooled_action_has_passed_what_needs_no_table():
    for line in ODD.values():
        action = codec.decode(line)
        for found in (decoded([line]) or [], BulkDecoder(Held).keep([action])):
            for one in found:
                if isinstance(one, Spooled):
                    check(one.path)
                    assert one.deletion_vector is None
                if isinstance(one, SpooledAdd):
                    assert one.size > 0
                    assert one.stats is None or FileStatistics.parse(one.stats)


@given(st.text(), st.text() | st.none())
def test_paths_and_statistics_are_judged_as_ever(path, stats):
    line = json.dumps({"add": json.loads(add_line(path, stats=stats))["add"]}).encode()
    try:
        action = codec.decode(line)
    except InvalidActionError:
        assert decoded([line]) is None
        return
    assert isinstance(action, Add)
    (kept,) = BulkDecoder(Held).keep([action])
    try:
        check(path)
        if stats is not None:
            FileStatistics.parse(stats)
    except (InvalidPath, InvalidStatistics):
        assert not isinstance(kept, Spooled)
    else:
        assert isinstance(kept, Spooled)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(
                st.sampled_from(["numRecords", "minValues", "tightBounds", "nullCount", "x"]), v
            )
        ),
    )
)
def test_statistics_are_told_from_other_texts(value):
    text = json.dumps(value)
    try:
        FileStatistics.parse(text)
    except InvalidStatistics:
        assert not is_statistics(text)
    else:
        assert is_statistics(text)


class TestContent:
    def lines(self) -> list[bytes]:
        return [add_line(f"p=1/{n}") for n in range(2_500)]

    def spooled(self) -> list[Action]:
        bulk = BulkDecoder(Held)
        lines = self.lines()
        found: list[Action] = []
        for start in range(0, len(lines), 400):
            text = b"".join(line + b"\n" for line in lines[start : start + 400])
            found += bulk.decode(text) or []
        return found

    def test_it_is_the_lines(self):
        content = content_of(self.spooled())
        expected = b"".join(line + b"\n" for line in self.lines())
        assert isinstance(content, LargeContent)
        assert len(content) == len(expected)
        assert whole(content) == expected
        assert sha256_of(content) == sha256_of(expected)
        assert is_same(content, expected)
        assert not is_same(content, expected[:-2] + b"x\n")

    def test_in_whatever_order_they_are(self):
        actions = self.spooled()
        other = codec.decode(b'{"txn":{"appId":"a","version":1}}')
        for changed in (
            [other, *actions],
            [*actions[3:], other, *actions[:3]],
            actions[1:],
            actions[::-1],
            [*actions[:400], *actions[:400]],
            [],
        ):
            assert b"".join(pieces_of(changed)) == codec.encode_lines(changed)

    def test_fields_can_be_set(self):
        action = self.spooled()[1_234]
        assert isinstance(action, Add)
        changed = codec.with_fields(action, {"baseRowId": 5})
        assert (changed.path, changed.base_row_id, changed.stats) == (action.path, 5, action.stats)

    def test_duplicates_are_found(self):
        actions = self.spooled()
        assert check_duplicates(actions) is None
        assert check_duplicates([*actions, actions[7]]) is not None


def test_a_removal_keeps_its_fields():
    (found,) = decoded([remove_line()]) or []
    assert isinstance(found, Remove)
    assert (found.deletion_timestamp, found.size, found.stats) == (7, 3, None)


def test_the_depth_that_is_taken_is_the_codecs():
    line = b'{"future":' + b"[" * (strict_json.MAX_DEPTH - 1) + b"]" * 63 + b"}"
    codec.decode(line)
    as_if_alone(decoded([line] * 2) or [], [line] * 2)

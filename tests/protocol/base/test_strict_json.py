"""Keys that are there twice are found by counting colons: exactly those, in any spelling."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.base import strict_json
from tidegate_protocol.base.strict_json import MAX_VALUES, NAMED_BYTES, InvalidJson, decode

TEXTS = st.text(alphabet=[":", "\\", '"', "u", "0", "3", "a", "A", "é", "\n"], max_size=6)
VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.none(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(st.tuples(TEXTS, inner), max_size=3).map(tuple),
    ),
    max_leaves=8,
)
"""A tuple is an object of these pairs, whose keys may be the same."""


def spelt(value, draw):
    """The value as JSON, its colons spelt one way or the other."""
    if isinstance(value, tuple):
        pairs = (f"{spelt(key, draw)} : {spelt(item, draw)}" for key, item in value)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spelt(item, draw) for item in value) + "]"
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if isinstance(value, str):
        text = text.replace(":", draw(st.sampled_from([":", "\\u003a", "\\u003A"])))
    return text


def is_ambiguous(text):
    found = []

    def look(pairs):
        found.append(len(pairs) != len(dict(pairs)))

    json.loads(text, object_pairs_hook=look)
    return any(found)


@given(VALUES, st.data())
def test_a_text_is_refused_where_an_object_has_a_key_twice_and_only_there(value, data):
    text = spelt(value, data.draw)
    if is_ambiguous(text):
        with pytest.raises(InvalidJson, match="appears twice"):
            decode(text.encode())
    else:
        assert decode(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        r'{"a:":1,"a\u003a":2}',
        r'{"\\u003a":1,"\\u003a":2}',
        r'{"a":":::","a":"\u003a"}',
        r'{"a":{"b":1},"a":"x\u003a"}',
    ],
)
def test_colons_in_strings_hide_no_key(text):
    with pytest.raises(InvalidJson, match=r"the key .* appears twice"):
        decode(text.encode())


@pytest.mark.parametrize("text", [r'{"a":"\\u003a"}', r'{"\u003a\u003A":"\\\u003a\\\\u003a:"}'])
def test_nor_do_they_pass_for_one(text):
    assert decode(text.encode()) == json.loads(text)


def test_of_a_long_text_the_key_is_not_named():
    text = b'{"a":1, "a":"' + b"x" * NAMED_BYTES + b'"}'
    with pytest.raises(InvalidJson, match=r"^a key appears twice"):
        decode(text)


@pytest.mark.parametrize("value", [b"1.50", b"1e0", b"1"])
def test_more_values_than_are_taken_are_not_made(value, monkeypatch):
    monkeypatch.setattr(strict_json, "_DECODER", None)
    with pytest.raises(InvalidJson, match=f"more than {MAX_VALUES} values"):
        decode(b'{"x":[' + (value + b",") * (MAX_VALUES + 1) + b"1]}")

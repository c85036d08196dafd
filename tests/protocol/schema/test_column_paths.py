"""Names of columns in text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_protocol.schema.column_paths import InvalidColumnPath, parse, parse_list


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", ()),
        ("  ", ()),
        ("a", (("a",),)),
        ("a,b.c", (("a",), ("b", "c"))),
        (" a , b . c ", (("a",), ("b", "c"))),
        ("`a.b`.`c,d`, e", (("a.b", "c,d"), ("e",))),
        ("`a``b`", (("a`b",),)),
        ("` `", ((" ",),)),
        ("ä_1", (("ä_1",),)),
    ],
)
def test_lists_of_columns(text, paths):
    assert parse_list(text) == paths


@pytest.mark.parametrize("text", [",", "a,", "a..b", ".a", "a b", "a-b", "`a", "``", "a`b`", "a;b"])
def test_what_is_no_list_of_columns(text):
    with pytest.raises(InvalidColumnPath, match="is not a list of columns"):
        parse_list(text)


def test_one_path():
    assert parse("a.`b.c`") == ("a", "b.c")


@pytest.mark.parametrize("text", ["", "a,b"])
def test_not_one_path(text):
    with pytest.raises(InvalidColumnPath, match="the path of one column"):
        parse(text)


@given(st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=3), max_size=3))
def test_quoted_names_are_read_back(paths):
    text = ",".join(".".join(f"`{name.replace('`', '``')}`" for name in path) for path in paths)
    assert parse_list(text) == tuple(map(tuple, paths))

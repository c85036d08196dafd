"""The property that names a table's hooks."""

import pytest

from tidegate_protocol.features.hooks import HOOKS, named_hooks
from tidegate_protocol.features.properties import InvalidProperty, canonical, check_new


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        (" , ", ()),
        ("a", ("a",)),
        (" a-b , c.d_1,a-b,", ("a-b", "c.d_1")),
        ("a" * 100, ("a" * 100,)),
    ],
)
def test_names_are_separated_by_commas(text: str, names: tuple[str, ...]):
    check_new({HOOKS: text})
    assert named_hooks({HOOKS: text}) == names


@pytest.mark.parametrize(
    "text", ["a b", "-a", "a;b", "a" * 101, ",".join(f"n{number}" for number in range(101))]
)
def test_what_is_no_list_of_names_is_refused_and_passed_over(text: str):
    with pytest.raises(InvalidProperty, match=r"tidegate\.hooks is .*: expected the names of at"):
        check_new({HOOKS: text})
    assert named_hooks({HOOKS: text}) == ()


def test_its_name_is_known_in_any_case():
    assert canonical({"Tidegate.HOOKS": "a"}) == {HOOKS: "a"}
    assert named_hooks({}) == ()

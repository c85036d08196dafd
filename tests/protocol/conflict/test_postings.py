"""Versions by key, as commits come, are taken back and are forgotten."""

import pytest

from tidegate_protocol.conflict.postings import Postings, tail


@pytest.fixture
def held():
    """Versions 1 to 3; `b` is in all of them."""
    postings = Postings[str]()
    postings.append(1, ["b", "a"])
    postings.append(2, {"b"})
    postings.append(3, {"c", "b"})
    return postings


def seen(postings):
    keys = list(postings.keys_after(0))
    return {key: list(postings.of(key)) for key in keys}, list(postings.versions)


def test_versions_are_in_order(held):
    assert seen(held) == ({"a": [1], "b": [1, 2, 3], "c": [3]}, [1, 2, 3])
    assert held.held({"a", "z"}) == {"a"}


@pytest.mark.parametrize(("after", "keys"), [(0, "abc"), (1, "bc"), (2, "bc"), (3, "")])
def test_keys_of_the_newest_are_found_without_the_others(held, after, keys):
    assert sorted(held.keys_after(after)) == list(keys)
    assert held.any_after(after) == bool(keys)


def test_a_commit_without_a_key_is_not_kept(held):
    held.append(4, ())
    assert not held.any_after(3)
    held.drop(4, ())
    held.forget(4, ())
    assert not Postings[str]().any_after(0)


def test_what_is_taken_back_was_never_there():
    postings = Postings[str]()
    postings.append(1, {"a"})
    postings.append(2, {"b"})
    postings.append(3, {"a", "c"})
    postings.drop(3, {"a", "c"})
    postings.restore_order()
    assert seen(postings) == ({"a": [1], "b": [2]}, [1, 2])
    # `a` was in the newest commit; it is not any more, and hides nobody.
    assert list(postings.keys_after(1)) == ["b"]


def test_what_is_forgotten_is_not_found(held):
    held.forget(1, {"a", "b"})
    held.forget(2, {"b"})
    assert seen(held) == ({"b": [3], "c": [3]}, [3])


def test_another_version_than_the_oldest_or_newest_is_a_mistake(held):
    with pytest.raises(ValueError, match="expected version 2, found 3"):
        held.drop(2, {"b"})
    with pytest.raises(ValueError, match="expected version 2, found 1"):
        held.forget(2, {"b"})


def test_the_rest_of_a_list():
    assert [list(tail([2, 4, 6], after)) for after in (0, 2, 3, 6)] == [
        [2, 4, 6],
        [4, 6],
        [4, 6],
        [],
    ]

"""Versions by key, as commits come, are taken back and are forgotten."""

import random

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


@pytest.mark.parametrize("most", [0, 1, 10])
@pytest.mark.parametrize("seed", range(20))
def test_what_is_taken_back_was_never_there_whatever_came_and_went(most, seed):
    dice = random.Random(seed)
    postings = Postings[str](most_misplaced=most)
    kept: dict[int, set[str]] = {}
    version = 0
    for _ in range(60):
        step = dice.random()
        if step < 0.6:
            version += 1
            kept[version] = set(dice.sample("abcdefg", dice.randint(1, 4)))
            postings.append(version, kept[version])
        elif kept and step < 0.85:
            for _ in range(dice.randint(1, min(3, len(kept)))):
                postings.drop(version, kept.pop(version))
                version = max(kept, default=version - 1)
            postings.restore_order()
        elif kept:
            postings.forget(min(kept), kept.pop(min(kept)))
        for after in range(version + 1):
            expected = {key for newer, keys in kept.items() if newer > after for key in keys}
            found = list(postings.keys_after(after))
            assert sorted(found) == sorted(expected)
    assert postings.versions == sorted(kept)


class Ordered(int):
    """A version that knows how often any was compared, as what sorts does."""

    compared = 0

    def __lt__(self, other):
        Ordered.compared += 1
        return int(self) < int(other)


def test_taking_back_a_few_keys_does_not_sort_all():
    postings = Postings[int]()
    for key in range(5_000):
        postings.append(Ordered(key), (key,))
    last = Ordered(5_000)
    postings.append(last, range(10))
    Ordered.compared = 0
    postings.drop(last, range(10))
    postings.restore_order()
    assert Ordered.compared == 0
    assert sorted(postings.keys_after(4_990)) == list(range(4_991, 5_000))
    assert sorted(postings.keys_after(-1)) == list(range(5_000))


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

"""Versions by key, as commits come, are taken back and are forgotten."""

import random

import pytest

from tidegate_protocol.conflict.postings import Postings


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


def test_another_version_than_the_oldest_or_newest_is_a_mistake(held):
    with pytest.raises(ValueError, match="expected version 2, found 3"):
        held.drop(2, {"b"})
    with pytest.raises(ValueError, match="expected version 2, found 1"):
        held.forget(2, {"b"})

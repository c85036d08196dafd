"""What is remembered of definitions of tables, and what is made only once."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.builders.actions import add, remove
from tests.builders.ledgers import prepared as prepared_from
from tests.builders.proposals import proposal, reads
from tidegate_protocol.base.memo import FEW, MANY, MEDIUM, SMALL, SOME, remember


class Counted:
    """The length of a text, and how often it was asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.remembered = remember(self._length, weigh=len)

    def _length(self, text: str) -> int:
        if not text:
            raise ValueError("empty")
        self.calls.append(text)
        return len(text)


class TestRemember:
    def test_a_key_is_looked_into_once(self):
        counted = Counted()
        assert [counted.remembered("ab") for _ in range(3)] == [2, 2, 2]
        assert counted.calls == ["ab"]

    def test_what_is_raised_is_not_remembered(self):
        counted = Counted()
        for _ in range(2):
            with pytest.raises(ValueError, match="empty"):
                counted.remembered("")
        assert counted.remembered("a") == 1

    def test_only_the_newest_are_held_and_few_large_ones(self):
        for size, held in ((4, MANY), (SMALL + 1, SOME), (MEDIUM, SOME), (MEDIUM + 1, FEW)):
            counted = Counted()
            keys = [f"{at:04}".rjust(size, "x") for at in range(held + 1)]
            for key in (*keys, keys[-1], keys[0]):
                counted.remembered(key)
            # The first had to go for the last.
            assert counted.calls == [*keys, keys[0]]

    def test_one_that_is_used_stays(self):
        for size, held in ((SMALL + 1, SOME), (MEDIUM + 1, FEW)):
            counted = Counted()
            keys = [f"{at:04}".rjust(size, "x") for at in range(held + 1)]
            for key in (*keys[:-1], keys[0], keys[-1], keys[0]):
                counted.remembered(key)
            assert counted.calls == keys

    def test_what_is_cheap(self):
        counted = Counted()
        assert counted.remembered.is_cheap("x" * SMALL)
        for size in (SMALL + 1, MEDIUM + 1):
            key = "x" * size
            assert not counted.remembered.is_cheap(key)
            counted.remembered(key)
            assert counted.remembered.is_cheap(key)
        assert len(counted.calls) == 2

    def test_threads_share_it(self):
        counted = Counted()
        keys = [f"{at:04}".rjust(SMALL + 1, "x") for at in range(2 * SOME)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(counted.remembered, keys * 20))
        assert found == [SMALL + 1] * len(found)


class TestMadeOnce:
    def test_a_changed_proposal_has_a_digest_of_its_own(self):
        first = proposal(add("a"), read_version=0)
        assert first.digest() == first.digest()
        other = dataclasses.replace(first, actions=(add("b"),))
        assert other.digest() != first.digest()
        assert other.digest() == proposal(add("b"), read_version=0).digest()

    def test_it_makes_no_difference_to_what_is_equal(self):
        first = proposal(add("a"), read_version=0)
        other = dataclasses.replace(first)
        first.digest()
        assert first == other
        assert repr(first) == repr(other)

    def test_the_identities_of_read_files(self):
        what = reads(files=["a%2Db", "s3a://b/x"])
        assert what.file_identities() == {"a-b", "s3://b/x"}
        assert what == reads(files=["a%2Db", "s3a://b/x"])
        assert dataclasses.replace(what, files=frozenset(["c"])).file_identities() == {"c"}

    def test_the_removed_files_of_a_transaction(self):
        mine = prepared_from(remove("a%2Db"), add("c"))
        assert mine.removed_files() == {"a-b": mine.actions[0]}
        assert dataclasses.replace(mine, actions=(add("c"),)).removed_files() == {}

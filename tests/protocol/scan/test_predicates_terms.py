"""What a predicate costs is counted before it is parsed."""

import time

import pytest

from tests.builders.actions import add, metadata
from tests.builders.lines import column
from tidegate_protocol.proposal.transaction import Reads
from tidegate_protocol.scan.predicates import terms_of
from tidegate_protocol.scan.reads import MOST_WORK, ReadPredicates


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", 0),
        ("a = 1", 2),
        ("`a b` = 'or or or'", 2),
        ("a = 1 or a = 2", 5),
        ("a in (1, 2, 3)", 4),
        ("a in ('x', \"y\", 'it''s', 'a\\'b')", 4),
        ("a like 'x%'", 9),
        ("like_it = 1", 2),
        ("'or or", 0),
        ("'or \\", 0),
    ],
)
def test_names_operators_and_parentheses_count(text, terms):
    assert terms_of(text) == terms


def test_a_list_counts_the_same_however_long_it_is():
    assert terms_of(f"a in ({','.join(map(str, range(10_000)))})") == 4


@pytest.mark.parametrize("text", ["'\\'", '"\\"', "`", "'\"", "\\", "1,", "a ", "rlike "])
def test_takes_time_linear_in_the_text(text):
    text *= 64 * 1024 // len(text)
    began = time.thread_time()
    terms_of(text)
    assert time.thread_time() - began < 1


def test_what_is_too_much_to_judge_may_match():
    """Nobody waits for a predicate that is judged for ever."""
    text = " OR ".join(f"x = {n}" for n in range(200))
    reads = ReadPredicates.over(Reads(predicates=(text,)), metadata([column("x")], ("x",)))
    judged = MOST_WORK // terms_of(text)
    partitions = [(("x", str(number + 1000)),) for number in range(judged + 10)]
    assert list(reads.covered(partitions)) == partitions[judged:]
    again = ReadPredicates.over(Reads(predicates=(text,)), metadata([column("x")], ("x",)))
    files = [add(f"{number}", {"x": str(number + 1000)}) for number in range(judged + 10)]
    found = again.first_match(files, use_statistics=False)
    assert found is files[judged]


def test_one_partition_is_charged_once():
    text = " OR ".join(f"x = {n}" for n in range(200))
    reads = ReadPredicates.over(Reads(predicates=(text,)), metadata([column("x")], ("x",)))
    files = [add(f"{number}", {"x": "1000"}) for number in range(MOST_WORK // terms_of(text) + 10)]
    assert reads.first_match(files, use_statistics=False) is None

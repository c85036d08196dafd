"""What a predicate costs is counted before it is parsed."""

import json

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


LONG = 6_400
TIMES = 1 + LONG // 64


def of_long_values(text: str) -> ReadPredicates:
    table = metadata([column("x", "string"), column("v")], ("x",))
    return ReadPredicates.over(Reads(predicates=(text,)), table)


def test_long_partition_values_count_by_their_length():
    """Each term may go through all of them."""
    text = " OR ".join(f"x LIKE '%a{n}_b%'" for n in range(200))
    judged = MOST_WORK // (terms_of(text) * TIMES)
    partitions = [(("x", f"{number:0>{LONG}}"),) for number in range(judged + 3)]
    assert list(of_long_values(text).covered(partitions)) == partitions[judged:]
    files = [add(f"{number}", dict(items)) for number, items in enumerate(partitions)]
    found = of_long_values(text).first_match(files, use_statistics=False)
    assert found is files[judged]


def test_so_they_do_beside_statistics():
    text = f"x LIKE '%0%' AND v > 400 AND ({' OR '.join(f'x > {n}' for n in range(400))})"
    judged = MOST_WORK // (terms_of(text) * TIMES)
    stats = json.dumps({"numRecords": 1, "maxValues": {"v": 5}})
    files = [
        add(f"{number}", {"x": f"{number:0>{LONG}}"}, stats=stats) for number in range(judged - 3)
    ]
    found = of_long_values(text).first_match(files, use_statistics=True)
    # All partitions first, and then three files.
    assert len(files) > 3
    assert found is files[3]

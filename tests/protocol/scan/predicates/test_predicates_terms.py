"""What is too much to judge may match."""

from tests.builders.actions import add, metadata
from tests.builders.lines import column
from tidegate_protocol.proposal.transaction import Reads
from tidegate_protocol.scan.predicates import terms_of
from tidegate_protocol.scan.reads import MOST_WORK, ReadPredicates


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

"""The part of the judge that looks at clocks: versions and reads in the order of real time."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.judging.history import Answer, Looked, Proposed
from tests.chaos.judging.log_reading import LogCommit
from tests.chaos.judging.violations import Kind

Found = Iterator[tuple[Kind, str]]


def _known(proposed: list[Proposed], looked: list[Looked]) -> list[tuple[float, int]]:
    """(when, version): from then on, somebody knew that this version exists. Sorted."""
    acks = [
        (call.answered, call.version)
        for call in proposed
        if call.answer is Answer.LANDED and call.version is not None
    ]
    return sorted([*acks, *((call.answered, call.version) for call in looked)])


def check_order(commits: list[LogCommit], proposed: list[Proposed], looked: list[Looked]) -> Found:
    """What was first sent after a version was known comes after that version."""
    first_sent: dict[str, float] = defaultdict(lambda: float("inf"))
    for call in proposed:
        first_sent[call.work.id] = min(first_sent[call.work.id], call.sent)
    landed = sorted(
        (first_sent[commit.id], commit.version)
        for commit in commits
        if commit.id is not None and commit.id in first_sent
    )
    for sent, version, known in _at_each(landed, _known(proposed, looked)):
        if version <= known:
            yield (
                Kind.ORDER,
                f"version {version} was first sent at {sent:.6f}, when {known} was known",
            )


def check_reads(proposed: list[Proposed], looked: list[Looked]) -> Found:
    """A read sees what was known when it began; what is published never shrinks."""
    reads = sorted((call.sent, call.version) for call in looked)
    for sent, version, known in _at_each(reads, _known(proposed, looked)):
        if version < known:
            yield Kind.STALE_READ, f"a read at {sent:.6f} saw {version}, when {known} was known"
    published = sorted((call.sent, call.published) for call in looked)
    seen = sorted((call.answered, call.published) for call in looked)
    for sent, version, known in _at_each(published, seen):
        if version < known:
            yield Kind.PUBLISHED, f"{version} was published at {sent:.6f}, and {known} before"
    for call in looked:
        if call.published > call.version:
            yield Kind.PUBLISHED, f"{call.published} was published of {call.version}"


def _at_each(
    events: list[tuple[float, int]], known: list[tuple[float, int]]
) -> Iterator[tuple[float, int, int]]:
    """Each event with the highest version known strictly before it (-1: none)."""
    position, highest = 0, -1
    for at, version in events:
        while position < len(known) and known[position][0] < at:
            highest = max(highest, known[position][1])
            position += 1
        yield at, version, highest

"""Properties of preparing, judging and completing that hold for every transaction."""

import json
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.actions import add, domain, features, metadata, protocol, remove, txn, unknown
from tests.builders.ledgers import NOW, prepared, state, winner
from tests.builders.lines import vector
from tests.builders.proposals import proposal, reads
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    IsolationLevel,
    PreparedTransaction,
    WinningCommit,
)

PATHS = ["a", "b", "c", "d"]
PARTITIONS = ["0", "1", "2"]
APPS = ["one", "two"]
DOMAINS = ["here", "there"]
LEVELS = [IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE]


@dataclass(frozen=True)
class Work:
    """What a commit does, as sets. `added` and `removed` map paths to partitions."""

    added: dict[str, str]
    removed: dict[str, str]
    apps: frozenset[str]
    domains: frozenset[str]
    data_change: bool

    def actions(self):
        changes = {"dataChange": self.data_change}
        return (
            *(remove(path, **changes) for path in self.removed),
            *(add(f"new-{path}", {"x": x}, **changes) for path, x in self.added.items()),
            *(txn(app) for app in sorted(self.apps)),
            *(domain(name) for name in sorted(self.domains)),
        )


@dataclass(frozen=True)
class Read:
    partitions: frozenset[str]
    files: frozenset[str]
    apps: frozenset[str]
    whole_table: bool

    def reads(self):
        predicates = [f"x = {partition}" for partition in sorted(self.partitions)]
        return reads(*predicates, whole_table=self.whole_table, files=self.files, app_ids=self.apps)


files = st.dictionaries(st.sampled_from(PATHS), st.sampled_from(PARTITIONS), max_size=2)
work = st.builds(
    Work,
    added=files,
    removed=files,
    apps=st.frozensets(st.sampled_from(APPS), max_size=1),
    domains=st.frozensets(st.sampled_from(DOMAINS), max_size=1),
    data_change=st.booleans(),
)
read = st.builds(
    Read,
    partitions=st.frozensets(st.sampled_from(PARTITIONS), max_size=2),
    files=st.frozensets(st.sampled_from(PATHS), max_size=2),
    apps=st.frozensets(st.sampled_from(APPS), max_size=1),
    whole_table=st.sampled_from([False, False, True]),
)
winners = st.lists(st.tuples(work, st.booleans()), max_size=4)


def table(level):
    new = metadata(["x", "v"], ["x"], {"delta.isolationLevel": level.value})
    return state(new, features("domainMetadata"))


def committed(mine, what, level) -> PreparedTransaction:
    return prepared(*mine.actions(), at=table(level), reads=what.reads())


def won(theirs) -> list[WinningCommit]:
    return [
        winner(*work.actions(), version=version, blind=blind)
        for version, (work, blind) in enumerate(theirs, start=1)
    ]


@given(work, read, st.sampled_from(LEVELS), winners, st.integers(0, 4))
def test_winners_may_come_in_two_parts(mine, what, level, theirs, cut):
    transaction, all_winners = committed(mine, what, level), won(theirs)
    at_once = check_conflicts(transaction, all_winners)
    first = check_conflicts(transaction, all_winners[:cut])
    if isinstance(first, Conflict):
        assert at_once == first
    else:
        assert check_conflicts(first, all_winners[cut:]) == at_once


@given(work, read, winners)
def test_what_is_accepted_at_the_stricter_level_is_accepted_at_the_weaker(mine, what, theirs):
    strict, weak = (
        check_conflicts(
            prepared(*mine.actions(), at=table(level), reads=what.reads(), operation="OPTIMIZE"),
            won(theirs),
        )
        for level in LEVELS
    )
    assert isinstance(strict, Conflict) or isinstance(weak, PreparedTransaction)


@given(work, read, winners, st.integers(0, 4))
def test_no_winner_takes_a_conflict_back(mine, what, theirs, cut):
    transaction, all_winners = committed(mine, what, LEVELS[0]), won(theirs)
    first = check_conflicts(transaction, all_winners[:cut])
    if isinstance(first, Conflict):
        assert check_conflicts(transaction, all_winners) == first


@given(work, read, winners, st.integers(0, 2**53), st.integers(-1, 2**53))
def test_what_lands_is_what_was_sent_and_later_than_before(mine, what, theirs, now, previous):
    outcome = check_conflicts(committed(mine, what, LEVELS[0]), won(theirs))
    if isinstance(outcome, Conflict):
        return
    version = len(theirs) + 1
    ready = complete(outcome, now_ms=now, previous_timestamp=previous, version=version)
    assert ready.timestamp >= now
    assert ready.timestamp > previous
    info, *rest = ready.content.splitlines()
    assert json.loads(info)["commitInfo"]["timestamp"] == ready.timestamp
    assert rest == [action.raw for action in mine.actions()]


odd_text = st.sampled_from(["", "a", "b", "a%2Db", "a-b", "/x", "é", "x=1/p", "_delta_log/1"])
odd_number = st.sampled_from([-1, 0, 1, 2**62])
odd_vector = st.one_of(st.none(), st.builds(vector, odd_text, cardinality=odd_number))
odd_stats = st.sampled_from([None, "", "{}", "[]", '{"numRecords":1,"tightBounds":false}'])
odd_values = st.dictionaries(odd_text, st.one_of(st.none(), odd_text), max_size=1)
odd_action = st.one_of(
    st.builds(
        lambda path, values, size, stats, vector: add(
            path, values, size=size, stats=stats, deletionVector=vector
        ),
        odd_text,
        odd_values,
        odd_number,
        odd_stats,
        odd_vector,
    ),
    st.builds(lambda path, values: remove(path, partitionValues=values), odd_text, odd_values),
    st.builds(txn, odd_text, odd_number),
    st.builds(domain, odd_text),
    st.builds(unknown, st.sampled_from(["sorcery", "sidecar"])),
    st.builds(
        lambda name, value: metadata(properties={name: value}),
        st.sampled_from(["delta.appendOnly", "delta.enableInCommitTimestamps", "delta.x", "x"]),
        st.sampled_from(["true", "false", ""]),
    ),
    st.builds(protocol, st.integers(0, 3), st.integers(0, 8)),
    st.builds(features, st.sampled_from(["appendOnly", "inCommitTimestamp", "catalogManaged"])),
)


@given(st.lists(odd_action, max_size=4), st.booleans())
def test_every_proposal_is_a_transaction_or_invalid(actions, at_head):
    offer = proposal(*actions, read_version=None if at_head else 0)
    outcome = prepare(offer, state())
    assert isinstance(outcome, PreparedTransaction | Invalid)
    if isinstance(outcome, Invalid):
        assert outcome.detail
    else:
        assert complete(outcome, now_ms=NOW, previous_timestamp=NOW, version=1).version == 1

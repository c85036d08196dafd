"""The ledger under any sequence of operations: the promises as invariants.

The rules drive one table of each kind through every operation, in any order. What was promised
is checked after each step against what the answers have said so far, remembered apart from the
ledger: versions without a gap (I2), one content per version (I3), an id lands at most once (I4),
refusals are final (I5), replays answer as the first time (I6), the published is a prefix (I7),
timestamps grow (I12) and a foreign commit is a version at once (I14).
"""

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.builders.actions import (
    add,
    commit_info,
    domain,
    features,
    managed,
    metadata,
    remove,
    txn,
)
from tests.builders.ledgers import NOW
from tests.builders.proposals import proposal, reads
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import (
    Ingested,
    Published,
    Quarantined,
    Ratified,
    Replayed,
    Stray,
    TransactionAborted,
    TransactionCommitted,
    VersionNotFound,
    WouldCommit,
)
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal
from tidegate_protocol.replay.commits import parse_commit
from tidegate_protocol.replay.snapshot import Snapshot

KINDS = {"plain": features("domainMetadata"), "managed": managed("domainMetadata")}
PATHS = ["a", "b", "c"]

table_ids = st.sampled_from(list(KINDS))
ids = st.sampled_from(["id-1", "id-2", "id-3", "id-4", "id-5", "id-6"])
partitions = st.sampled_from(["0", "1"])
clocks = st.integers(NOW - 5, NOW + 5)
file_actions = st.one_of(
    st.builds(lambda path, x: add(path, {"x": x}), st.sampled_from(PATHS), partitions),
    st.builds(remove, st.sampled_from(PATHS)),
)
other_actions = st.one_of(
    st.builds(txn, st.just("app"), st.integers(0, 1)),
    st.builds(domain, st.just("d")),
    st.builds(
        lambda name, by: metadata(["x", "v"], [by], name=name),
        st.sampled_from(["n", "m"]),
        st.sampled_from(["x", "v"]),
    ),
)
actions = st.lists(file_actions | other_actions, max_size=3).map(tuple)
some_reads = st.builds(
    lambda predicates, files, apps: reads(*predicates, files=files, app_ids=apps),
    st.lists(st.sampled_from(["x = 0", "x = 1"]), max_size=1),
    st.frozensets(st.sampled_from(PATHS), max_size=1),
    st.frozensets(st.just("app"), max_size=1),
)


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.contents: dict[tuple[str, int], bytes] = {}
        self.landed: dict[tuple[str, str], tuple[Proposal, int]] = {}
        self.refused: dict[tuple[str, str], set[str]] = {}
        self.aborted: set[tuple[str, str]] = set()
        self.log: dict[tuple[str, int], bytes] = {}

    @initialize(now=clocks)
    def create(self, now):
        for table_id, protocol in KINDS.items():
            first = proposal(
                protocol,
                metadata(["x", "v"], ["x"]),
                read_version=-1,
                operation="CREATE TABLE",
                transaction_id="create",
            )
            self.ledger, outcome = self.ledger.create(table_id, first, now_ms=now)
            self.note(table_id, outcome.commit, first)

    @rule(
        table_id=table_ids,
        transaction_id=ids,
        actions=actions,
        some_reads=some_reads,
        lag=st.one_of(st.none(), st.integers(-1, 3)),
        operation=st.sampled_from(["WRITE", "REPLACE TABLE"]),
        now=clocks,
    )
    def propose(self, *, table_id, transaction_id, actions, some_reads, lag, operation, now):
        head = self.ledger.tables[table_id].latest_version
        offer = proposal(
            *actions,
            transaction_id=transaction_id,
            read_version=None if lag is None else max(head - lag, 0),
            reads=some_reads,
            operation=operation,
        )
        self.offer(table_id, offer, now)

    @rule(table_id=table_ids, transaction_id=ids, now=clocks)
    def propose_again(self, table_id, transaction_id, now):
        offer, version = self.landed.get((table_id, transaction_id), (None, None))
        if offer is not None:
            before = self.ledger
            self.ledger, outcome = before.propose(table_id, offer, now_ms=now)
            assert isinstance(outcome, Replayed)
            assert outcome.commit.version == version
            assert outcome.commit.content == self.contents[table_id, version]
            assert self.ledger is before

    def offer(self, table_id, offer, now):
        expected = self.ledger.conflict_check(table_id, offer)
        head = self.ledger.tables[table_id].latest_version
        self.ledger, outcome = self.ledger.propose(table_id, offer, now_ms=now)
        key = (table_id, offer.transaction_id)
        match outcome:
            case Ratified(commit=commit):
                assert isinstance(expected, WouldCommit)
                assert expected.version == commit.version == head + 1
                assert key not in self.landed
                assert key not in self.aborted
                assert offer.digest() not in self.refused.get(key, set())
                self.note(table_id, commit, offer)
            case Replayed(commit=commit):
                assert self.landed[key] == (self.landed[key][0], commit.version)
                assert self.landed[key][0].digest() == offer.digest()
            case Conflict() | Invalid():
                self.refused.setdefault(key, set()).add(offer.digest())
            case TransactionAborted():
                assert key in self.aborted or key in self.refused
            case Quarantined():
                assert self.ledger.tables[table_id].quarantine_reason is not None
            case VersionNotFound():
                assert offer.read_version > head
            case _:
                raise AssertionError(outcome)
        if not isinstance(outcome, Ratified):
            assert outcome == expected
            assert self.ledger.tables[table_id].latest_version == head

    @rule(table_id=table_ids, transaction_id=ids)
    def abort(self, table_id, transaction_id):
        self.ledger, outcome = self.ledger.abort(table_id, transaction_id)
        if isinstance(outcome, TransactionCommitted):
            assert self.landed[table_id, transaction_id][1] == outcome.commit.version
        else:
            assert isinstance(outcome, TransactionAborted)
            assert (table_id, transaction_id) not in self.landed
            self.aborted.add((table_id, transaction_id))

    @rule(
        table_id=table_ids,
        path=st.sampled_from(PATHS),
        readable=st.sampled_from([True, True, True, True, False]),
    )
    def write_past_the_service(self, table_id, path, readable):
        info = commit_info(timestamp=NOW, operation="WRITE", isBlindAppend=True)
        content = encode_lines([info, add(path, {"x": "1"})]) if readable else b"torn"
        was_quarantined = self.ledger.tables[table_id].quarantine_reason is not None
        self.ledger, outcome = self.ledger.foreign_commit(table_id, content, modified_ms=NOW)
        match outcome:
            case Ingested(commit=commit):
                assert readable
                self.contents[table_id, commit.version] = commit.content
                self.log[table_id, commit.version] = content
            case Stray(version=version):
                assert table_id == "managed"
                self.log[table_id, version] = content
            case Quarantined():
                assert was_quarantined or not readable

    @rule()
    def publish(self):
        table = self.ledger.tables["managed"]
        self.ledger, outcome = self.ledger.publish("managed")
        if isinstance(outcome, Published):
            assert outcome.version == table.published_version + 1
            content = self.contents["managed", outcome.version]
            assert self.log.setdefault(("managed", outcome.version), content) == content

    @rule(table_id=table_ids, lag=st.integers(0, 3))
    def read(self, table_id, lag):
        version = max(self.ledger.tables[table_id].latest_version - lag, 0)
        expected = Snapshot()
        for at in range(version + 1):
            expected = expected.apply(at, parse_commit(self.contents[table_id, at]))
        assert self.ledger.read(table_id, version) == expected

    def note(self, table_id, commit, offer):
        assert (table_id, commit.version) not in self.contents
        self.contents[table_id, commit.version] = commit.content
        self.landed[table_id, offer.transaction_id] = (offer, commit.version)
        if table_id == "plain":
            self.log[table_id, commit.version] = commit.content

    @invariant()
    def versions_have_no_gap_and_one_content(self):
        for table_id, table in self.ledger.tables.items():
            assert [commit.version for commit in table.commits] == list(range(len(table.commits)))
            for commit in table.commits:
                assert commit.content == self.contents[table_id, commit.version]

    @invariant()
    def ids_land_at_most_once(self):
        for table in self.ledger.tables.values():
            seen = [c.transaction_id for c in table.commits if c.transaction_id is not None]
            assert len(seen) == len(set(seen))

    @invariant()
    def timestamps_grow(self):
        for table in self.ledger.tables.values():
            for before, after in zip(table.commits, table.commits[1:], strict=False):
                assert after.timestamp > before.timestamp
                if after.body_digest is not None:
                    info = json.loads(after.content.splitlines()[0])["commitInfo"]
                    assert info["timestamp"] == after.timestamp

    @invariant()
    def the_published_is_a_prefix_with_the_same_bytes(self):
        for table_id, table in self.ledger.tables.items():
            assert -1 <= table.published_version <= table.latest_version
            for version in range(table.published_version + 1):
                assert self.log[table_id, version] == self.contents[table_id, version]
        plain = self.ledger.tables.get("plain")
        assert plain is None or plain.published_version == plain.latest_version


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=60, stateful_step_count=40)

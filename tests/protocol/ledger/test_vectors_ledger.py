"""Every conflict vector, against the ledger, on both kinds of table."""

import json

import pytest

from tests import vectors
from tests.builders.ledgers import NOW, TABLE
from tests.builders.proposals import proposal
from tests.vector_facts import Log
from tests.vectors import Kind, Landed, Lost, Outcome, Refused, TableSpec, Vector
from tidegate_protocol.base.problems import PROBLEMS
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.table_features import protocol_for
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import Created, CreateOutcome, ProposeOutcome, Ratified
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.actions import Protocol as ProtocolAction
from tidegate_protocol.log.codec import from_body
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal
from tidegate_protocol.schema.table_schema import parse_schema, to_json

ALL = vectors.load()


class LedgerDriver:
    """A ledger whose clock stands still, so that only the log makes timestamps grow."""

    def __init__(self) -> None:
        self._ledger = Ledger()

    def create(self, spec: TableSpec) -> None:
        schema = parse_schema(json.dumps(spec.schema))
        properties = TableProperties.parse(spec.properties)
        protocol = (
            protocol_for(properties, schema, catalog_managed=spec.catalog_managed)
            if spec.protocol is None
            else from_body(ProtocolAction, spec.protocol)
        )
        metadata = Metadata(
            id="the-tables-own-id",
            schema_string=to_json(schema),
            partition_columns=spec.partition_columns,
            configuration=dict(spec.properties),
            created_time=NOW,
        )
        first = proposal(protocol, metadata, read_version=-1, operation="CREATE TABLE")
        outcome = self.create_by(first)
        assert outcome == Landed(version=0), outcome

    def create_by(self, proposal: Proposal) -> Outcome:
        self._ledger, outcome = self._ledger.create(TABLE, proposal, now_ms=NOW)
        return _outcome(outcome)

    def propose(self, proposal: Proposal) -> Outcome:
        self._ledger, outcome = self._ledger.propose(TABLE, proposal, now_ms=NOW)
        return _outcome(outcome)

    def log(self) -> Log:
        table = self._ledger.tables.get(TABLE)
        commits = () if table is None else table.commits
        return [[json.loads(line) for line in commit.content.splitlines()] for commit in commits]


def _outcome(outcome: CreateOutcome | ProposeOutcome) -> Outcome:
    match outcome:
        case Created(commit=commit) | Ratified(commit=commit):
            return Landed(version=commit.version)
        case Conflict(code=code, partition=partition):
            error_class = PROBLEMS[code].error_class
            assert error_class is not None
            return Lost(error_class=error_class, partition=partition)
        case Invalid(code=code):
            return Refused(code=code.value)
    raise AssertionError(outcome)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("vector", ALL, ids=lambda vector: f"{vector.theme}/{vector.name}")
def test_vector(vector: Vector, kind: Kind):
    reason = vectors.skip_reason(vector, kind)
    if reason is not None:
        pytest.skip(reason)
    assert vectors.run(vector, kind, LedgerDriver()) == []

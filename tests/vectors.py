"""The conflict vectors: loading them, making proposals of them, and running them.

`run` needs a `VectorDriver`, the way to some coordinator; nothing else here knows which. The
vectors lie beside the checkout (`../shared/vectors`); their README says what each field means.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid5

from tests.vector_facts import Line, Log, broken_facts, live_files
from tidegate_protocol.features import table_features
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import Protocol as ProtocolAction
from tidegate_protocol.proposal.transaction import Proposal, Reads

FOLDER = Path(__file__).parents[2] / "shared" / "vectors"
ABSENT = f"the vectors are not beside the checkout, at ../{FOLDER.parent.name}/{FOLDER.name}"

VECTOR_ID = "11111111-2222-4333-8444-555555555555"
"""The id that the vectors' metaData actions carry in the place of the table's own."""

SUPPORTED_NEEDS = table_features.SUPPORTED_WRITER_FEATURES | {
    "createTable",
    "dropFeature",
    "rowTrackingSuspended",
}

_IDS = UUID(VECTOR_ID)
_MANAGED = "catalogManaged"
_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"


class Kind(StrEnum):
    """The two kinds of table that every vector is run on."""

    PLAIN = "plain"
    CATALOG_MANAGED = "catalog-managed"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One commit to be: actions as the log has them."""

    actions: tuple[Line, ...]
    operation: str
    reads: Reads = field(default_factory=Reads)


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """The table to create; `schema` is Delta's struct JSON, `protocol` a protocol action's body
    or None for the lowest one that serves."""

    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    protocol: Mapping[str, Any] | None
    catalog_managed: bool


@dataclass(frozen=True, kw_only=True)
class Vector:
    """One case. `live_files` is None where the vector does not say."""

    name: str
    theme: str
    needs: frozenset[str]
    table: Mapping[str, Any] | None
    history: tuple[Step, ...]
    winners: tuple[Step, ...]
    transaction: Step
    expect: Mapping[str, Any]
    facts: tuple[Mapping[str, Any], ...]
    live_files: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Landed:
    """`version` is None where an empty proposal wrote none."""

    version: int | None


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A conflict, by Delta's name, with its partition hint."""

    error_class: str
    partition: Mapping[str, str | None] | None


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A proposal that can never be committed, by its problem code."""

    code: str


Outcome = Landed | Lost | Refused


class VectorDriver(Protocol):
    """The way to a coordinator with one table, which `create` or `create_by` makes."""

    def create(self, spec: TableSpec) -> None:
        """Make the table; its version 0 holds nothing but protocol and metaData."""
        ...

    def create_by(self, proposal: Proposal) -> Outcome:
        """Make the table by a first commit of the writer's own, read from version -1."""
        ...

    def propose(self, proposal: Proposal) -> Outcome: ...

    def log(self) -> Log:
        """Every version's lines, parsed, from version 0 to the latest."""
        ...


def load() -> list[Vector]:
    """Every vector; none where they are absent."""
    return [
        _vector(path.stem, raw)
        for path in sorted(FOLDER.glob("*.json"))
        for raw in json.loads(path.read_text())
    ]


def skip_reason(vector: Vector, kind: Kind) -> str | None:
    """Why a vector says nothing about this coordinator, or about this kind of table."""
    unsupported = sorted(vector.needs - SUPPORTED_NEEDS)
    if unsupported:
        return f"needs {unsupported}"
    if kind is Kind.PLAIN:
        return None
    if vector.table is None:
        return "its first commit says what kind of table it makes"
    if "inCommitTimestamp" in vector.needs and (
        _IN_COMMIT_TIMESTAMPS not in vector.table["properties"] or _changes_metadata(vector)
    ):
        return "in-commit timestamps of a catalog-managed table are on from its creation"
    return None


def run(vector: Vector, kind: Kind, driver: VectorDriver) -> list[str]:
    """What differs from what the vector expects; nothing where it passes."""
    own_metadata: Mapping[str, Any] = {}
    if vector.table is not None:
        driver.create(_table_spec(vector.table, kind))
        (own_metadata,) = [line["metaData"] for line in driver.log()[0] if "metaData" in line]
    resolver = _Resolver(vector=vector, kind=kind, own_metadata=own_metadata)
    read_version = len(vector.history) - (vector.table is None)
    *before, (_, transaction) = _steps(vector)
    for name, step in before:
        proposal = resolver.proposal(name, step, read_version=len(driver.log()) - 1)
        outcome = _propose(driver, proposal)
        assert isinstance(outcome, Landed), f"{name}: {outcome}"
    proposal = resolver.proposal("transaction", transaction, read_version=read_version)
    return compare(vector, _propose(driver, proposal), driver.log())


def compare(vector: Vector, outcome: Outcome, log: Log) -> list[str]:
    """What of the outcome and of the log afterwards is not as the vector expects it."""
    expect = vector.expect
    problems = []
    match outcome:
        case Landed():
            found = {"outcome": "committed"}
        case Lost(error_class=error, partition=partition):
            found = {"outcome": "conflict", "error": error, "partition": partition}
        case Refused(code=code):
            found = {"outcome": "invalid", "error": code}
    for name, expected in expect.items():
        if found.get(name) != expected:
            problems.append(f"{name}: expected {expected!r}, found {found.get(name)!r}")
    if not isinstance(outcome, Landed) or problems:
        return problems
    version = len(log) - 1 if outcome.version is None else outcome.version
    last_winner = len(vector.history) + len(vector.winners)
    problems.extend(broken_facts(vector.facts, log, version=version, last_winner=last_winner))
    live = live_files(log)
    if vector.live_files is not None and live != sorted(vector.live_files):
        problems.append(f"live files: expected {sorted(vector.live_files)}, found {live}")
    return problems


def _steps(vector: Vector) -> list[tuple[str, Step]]:
    """Every step with a name, in the order of landing."""
    return [
        *((f"history {index}", step) for index, step in enumerate(vector.history)),
        *((f"winner {index}", step) for index, step in enumerate(vector.winners)),
        ("transaction", vector.transaction),
    ]


def _propose(driver: VectorDriver, proposal: Proposal) -> Outcome:
    if proposal.read_version == -1 and not driver.log():
        return driver.create_by(proposal)
    return driver.propose(proposal)


@dataclass(frozen=True, kw_only=True)
class _Resolver:
    """Makes proposals of a vector's steps, for one table."""

    vector: Vector
    kind: Kind
    own_metadata: Mapping[str, Any]

    def proposal(self, name: str, step: Step, *, read_version: int) -> Proposal:
        lines = [self._line(line) for line in step.actions]
        return Proposal(
            transaction_id=str(uuid5(_IDS, f"{self.vector.theme}/{self.vector.name}/{name}")),
            operation=step.operation,
            actions=tuple(codec.decode(json.dumps(line).encode()) for line in lines),
            read_version=read_version,
            reads=step.reads,
        )

    def _line(self, line: Line) -> Line:
        """With the table's own id and creation time, and what its kind asks of a protocol."""
        ((name, body),) = line.items()
        if name == "metaData" and body["id"] == VECTOR_ID:
            own = {key: self.own_metadata.get(key, body[key]) for key in ("id", "createdTime")}
            return {name: {**body, **own}}
        if name == "protocol" and self.kind is Kind.CATALOG_MANAGED:
            return {name: _managed_protocol(body)}
        return line


def _table_spec(table: Mapping[str, Any], kind: Kind) -> TableSpec:
    managed = kind is Kind.CATALOG_MANAGED
    protocol = table["protocol"]
    columns = [{"metadata": {}, **column} for column in table["columns"]]
    order = ("name", "type", "nullable", "metadata")
    return TableSpec(
        schema={"type": "struct", "fields": [{key: c[key] for key in order} for c in columns]},
        partition_columns=tuple(table["partition_columns"]),
        properties=table["properties"],
        protocol=_managed_protocol(protocol) if managed and protocol else protocol,
        catalog_managed=managed,
    )


def _managed_protocol(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same protocol on a catalog-managed table, where it is a valid one at all."""
    protocol = codec.from_body(ProtocolAction, body)
    if table_features.check_supported(protocol) is not None:
        return body
    raised = table_features.with_features(protocol, [_MANAGED])
    return json.loads(codec.encode(raised))["protocol"]


def _changes_metadata(vector: Vector) -> bool:
    return any("metaData" in line for _, step in _steps(vector) for line in step.actions)


def _vector(theme: str, raw: Mapping[str, Any]) -> Vector:
    return Vector(
        name=raw["name"],
        theme=theme,
        needs=frozenset(raw.get("needs", ())),
        table=raw["table"],
        history=tuple(
            Step(actions=tuple(actions), operation=_history_operation(actions))
            for actions in raw["history"]
        ),
        winners=tuple(_step(winner) for winner in raw["winners"]),
        transaction=_step(raw),
        expect=raw["expect"],
        facts=tuple(raw.get("expect_log", ())),
        live_files=None if "live_files" not in raw else tuple(raw["live_files"]),
    )


def _step(raw: Mapping[str, Any]) -> Step:
    reads = raw["reads"]
    return Step(
        actions=tuple(raw["actions"]),
        operation=raw["operation"],
        reads=Reads(
            whole_table=reads["whole_table"],
            predicates=tuple(reads["predicates"]),
            files=frozenset(reads["files"]),
            app_ids=frozenset(reads["app_ids"]),
        ),
    )


def _history_operation(actions: Sequence[Line]) -> str:
    kinds = {kind for action in actions for kind in action}
    if "metaData" in kinds:
        return "SET TBLPROPERTIES"
    return "UPGRADE PROTOCOL" if "protocol" in kinds else "WRITE"

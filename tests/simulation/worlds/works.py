"""What clients propose: made once for all worlds, since worlds differ in what becomes of it."""

import json
from dataclasses import replace
from functools import cache, lru_cache

from msgspec import structs

from tests.chaos.judging.history import Work
from tests.simulation.worlds.plan import Kind
from tidegate.wire.exchange import Request
from tidegate_protocol.log.actions import Action, Add, Metadata, Remove
from tidegate_protocol.proposal.transaction import Proposal, Reads
from tidegate_protocol.replay.commits import parse_commit

TABLE = "main.sim.t"
APPENDED, NEW = "a", "s"
REGISTER = "r"
OLD, ABORTED = "old", "aborted"
"""Works of long before: the one landed, the other was aborted."""


def schema(*, nullable: bool) -> str:
    return json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "p", "type": "string", "nullable": nullable, "metadata": {}},
                {"name": "v", "type": "long", "nullable": True, "metadata": {}},
            ],
        }
    )


parsed = lru_cache(maxsize=1024)(parse_commit)
"""What a commit holds. Those that every world begins with are read by every judge."""


@cache
def add(path: str, partition: str | None) -> Add:
    return Add(
        path=path,
        partition_values={"p": partition},
        size=10,
        modification_time=1,
        data_change=True,
        stats=None,
    )


@cache
def _remove(path: str) -> Remove:
    return Remove(path=path, deletion_timestamp=1, data_change=True)


def nullable(metadata: Metadata) -> Metadata:
    return structs.replace(metadata, schema_string=schema(nullable=True), raw=b"")


@cache
def _reads(partition: str | None) -> Reads:
    return Reads() if partition is None else Reads(predicates=(f"p = '{partition}'",))


def make(
    kind: Kind,
    name: str,
    *,
    read_version: int | None = None,
    live: tuple[str, ...] = (),
    metadata: Metadata | None = None,
) -> tuple[Work, Proposal]:
    """The work as the judge knows it, and as it is proposed. `live` are the register's files at
    the version that was read."""
    read: str | None = None
    actions: tuple[Action, ...]
    work = Work(table=TABLE, id=f"id-{name}", adds=((f"f-{name}", APPENDED),))
    actions = (add(f"f-{name}", APPENDED),)
    match kind:
        case Kind.APPEND:
            pass
        case Kind.NULL:
            work = replace(work, adds=((f"f-{name}", None),))  # type: ignore[arg-type]
            actions = (add(f"f-{name}", None),)
        case Kind.NULLABLE:
            assert metadata is not None
            work = replace(work, adds=(), read_version=read_version)
            actions = (nullable(metadata),)
        case Kind.AHEAD:
            work = replace(work, read_version=read_version)
        case Kind.OLD:
            return make(Kind.APPEND, OLD)
        case Kind.ABORTED:
            return make(Kind.APPEND, ABORTED)
        case Kind.SUMMARY:
            read = APPENDED
            work = replace(
                work,
                adds=((f"f-{name}", NEW),),
                read_version=read_version,
                read=frozenset({APPENDED}),
            )
            actions = (add(f"f-{name}", NEW),)
        case Kind.REGISTER:
            read = REGISTER
            work = Work(
                table=TABLE,
                id=f"id-{name}",
                adds=((f"f-{name}", REGISTER),),
                removes=live,
                read_version=read_version,
                read=frozenset({REGISTER}),
                register=REGISTER,
                parent=live[0] if live else None,
            )
            actions = (*(_remove(path) for path in live), add(f"f-{name}", REGISTER))
    proposal = Proposal(
        transaction_id=work.id,
        operation="CHANGE COLUMN" if kind is Kind.NULLABLE else "WRITE",
        actions=actions,
        read_version=work.read_version,
        reads=_reads(read),
    )
    return work, proposal


REQUEST = Request(method="POST", path=f"/tables/{TABLE}/commits", body=b"")
"""What the flow is given: what is in it goes to the use case as it is."""

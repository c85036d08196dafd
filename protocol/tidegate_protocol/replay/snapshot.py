"""A table at a version, folded from its commits (PROTOCOL.md, "Action Reconciliation")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate_protocol.features import row_tracking
from tidegate_protocol.log.actions import (
    Action,
    Add,
    DomainMetadata,
    LogicalFile,
    Metadata,
    Protocol,
    Remove,
    Txn,
    file_key,
)
from tidegate_protocol.log.paths import identity
from tidegate_protocol.proposal.transaction import ReadState


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the commits up to `version` make of a table; version -1 is "no table yet".

    `files` are the live ones by `actions.file_key`, `txns` the newest txn of each application
    id, `domains` the metadata domains that are not removed.
    """

    version: int = -1
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: Mapping[LogicalFile, Add] = field(default_factory=dict)
    txns: Mapping[str, Txn] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)

    @property
    def read_state(self) -> ReadState:
        return ReadState(
            version=self.version,
            protocol=self.protocol,
            metadata=self.metadata,
            row_id_high_water_mark=row_tracking.high_water_mark(
                self.domains.get(row_tracking.DOMAIN)
            ),
        )

    def apply(self, version: int, actions: Sequence[Action]) -> "Snapshot":
        """The snapshot after the commit of the next version. Raises `ValueError` for another."""
        if version != self.version + 1:
            raise ValueError(f"expected version {self.version + 1}, found {version}")
        protocol, metadata = self.protocol, self.metadata
        files, txns, domains = dict(self.files), dict(self.txns), dict(self.domains)
        for action in actions:
            match action:
                case Add():
                    files[file_key(action)] = action
                case Remove():
                    files.pop(file_key(action), None)
                case Protocol():
                    protocol = action
                case Metadata():
                    metadata = action
                case Txn():
                    txns[action.app_id] = action
                case DomainMetadata(removed=True):
                    domains.pop(action.domain, None)
                case DomainMetadata():
                    domains[action.domain] = action
                case _:
                    pass
        return Snapshot(
            version=version,
            protocol=protocol,
            metadata=metadata,
            files=files,
            txns=txns,
            domains=domains,
        )

    def file_at(self, path: str) -> Add | None:
        """A live file by its path as actions carry it, whatever its deletion vector."""
        wanted = identity(path)
        return next((add for (plain, _), add in self.files.items() if plain == wanted), None)

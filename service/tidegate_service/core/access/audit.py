"""Who did what: the audit trail's rows as the use cases see them.

A commit is not among them: its own row says who made it, and becomes one of these when its
table is forgotten.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidegate_service.core.access.roles import Caller


class Deed(StrEnum):
    """What changed. `commit` stands for the commits of a table that was forgotten since, `lose` for
    what a rebuild found no place for in the log, `clean-up` for log files that are deleted."""

    COMMIT = "commit"
    CREATE = "create"
    REGISTER = "register"
    REBUILD = "rebuild"
    LOSE = "lose"
    ABORT = "abort"
    FORGET = "forget"
    DELETE_FORGOTTEN = "delete-forgotten"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    CLEAN_UP = "clean-up"
    VACUUM = "vacuum"
    CREATE_TOKEN = "create-token"
    REVOKE_TOKEN = "revoke-token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a table, recorded in the transaction that makes it. Where it concerns several
    versions, they are those from `from_version` to `version`."""

    deed: Deed
    by: Caller
    version: int | None = None
    from_version: int | None = None
    transaction_id: str | None = None

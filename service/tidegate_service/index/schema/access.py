"""The index's tables of who may do what, and of who did it.

Declared on the same metadata as the rest; import `metadata` from here to have all of it.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    event,
    func,
)

from tidegate_service.index.schema.tables import bytes_order
from tidegate_service.index.schema.upkeep import metadata

__all__ = ["audit", "metadata", "token_grants", "tokens"]


tokens = Table(
    "tokens",
    metadata,
    Column("id", bytes_order(), nullable=False),
    Column("principal", Text, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("id", name="tokens_pkey"),
    CheckConstraint("length(sha256) = 32", name="tokens_sha256_check"),
)
"""One row a token, kept after its end. `sha256` is of the token's text, which is nowhere."""

token_grants = Table(
    "token_grants",
    metadata,
    Column("token_id", bytes_order(), nullable=False),
    Column("role", Text, nullable=False),
    Column("scope", bytes_order(), nullable=False),
    PrimaryKeyConstraint("token_id", "scope", name="token_grants_pkey"),
    ForeignKeyConstraint(["token_id"], ["tokens.id"], name="token_grants_token_id_fkey"),
    CheckConstraint("role IN ('reader', 'writer', 'admin')", name="token_grants_role_check"),
)
"""What a token may do where, as `core.access.roles.Grant` has it."""

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(always=True), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("principal", Text, nullable=False),
    Column("deed", Text, nullable=False),
    Column("table_id", Uuid),
    Column("table_name", bytes_order()),
    Column("version", BigInteger),
    Column("transaction_id", bytes_order()),
    Column("commit_timestamp", BigInteger),
    Column("token_id", bytes_order()),
    Column("request_id", Text),
    Column("from_version", BigInteger),
    PrimaryKeyConstraint("id", name="audit_pkey"),
)
"""One row a state change, written in its transaction; but for commits, whose own rows say who
made them until their table is forgotten. It refers to tables by value, since it outlives them.
`commit_timestamp` in ms, as the commit has it. `from_version` is the first of several versions, of
which `version` is the last."""

Index("audit_table_idx", audit.c.table_id, audit.c.id)

_APPEND_ONLY = """
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of the audit trail are only ever added'
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'audit_append_only';
END
$$
"""
_TRIGGER = """
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()
"""


@event.listens_for(audit, "after_create")
def _only_append(_target: Table, connection: Connection, **_: object) -> None:
    connection.exec_driver_sql(_APPEND_ONLY)
    connection.exec_driver_sql(_TRIGGER)

"""Tokens and their rights, the audit trail, and who made each commit.

Revision: 0003, after 0002
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

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


def upgrade() -> None:
    _tokens()
    _audit()
    op.add_column("commits", sa.Column("principal", sa.Text()))
    op.add_column("commits", sa.Column("request_id", sa.Text()))


def downgrade() -> None:
    op.drop_column("commits", "request_id")
    op.drop_column("commits", "principal")
    op.drop_table("audit")
    op.execute("DROP FUNCTION audit_is_append_only()")
    op.drop_table("token_grants")
    op.drop_table("tokens")


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(collation="C"), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.now(),
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="tokens_pkey"),
        sa.CheckConstraint("length(sha256) = 32", name="tokens_sha256_check"),
    )
    op.create_table(
        "token_grants",
        sa.Column("token_id", sa.Text(collation="C"), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("token_id", "scope", name="token_grants_pkey"),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="token_grants_token_id_fkey"),
        sa.CheckConstraint("role IN ('reader', 'writer', 'admin')", name="token_grants_role_check"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.clock_timestamp(),
        ),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("deed", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Uuid()),
        sa.Column("table_name", sa.Text(collation="C")),
        sa.Column("version", sa.BigInteger()),
        sa.Column("transaction_id", sa.Text(collation="C")),
        sa.Column("commit_timestamp", sa.BigInteger()),
        sa.Column("token_id", sa.Text(collation="C")),
        sa.Column("request_id", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="audit_pkey"),
    )
    op.create_index("audit_table_idx", "audit", ["table_id", "id"])
    op.execute(_APPEND_ONLY)
    op.execute(_TRIGGER)

"""How the upkeep of tables stands, and rows of the audit trail that are of several versions.

The release before knows neither: its instances do no upkeep beside ours.

Revision: 0012, after 0011
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("audit", sa.Column("from_version", sa.BigInteger()))
    op.create_table(
        "table_upkeep",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(collation="C"), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True)),
        sa.Column("due_version", sa.BigInteger()),
        sa.Column("due_at", sa.DateTime(timezone=True)),
        sa.Column("failures", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("trouble", sa.Text()),
        sa.Column("claimed_by", sa.Text()),
        sa.Column("claimed_until", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("table_id", "kind", name="table_upkeep_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name="table_upkeep_table_id_fkey", ondelete="CASCADE"
        ),
        sa.CheckConstraint("version >= -1", name="table_upkeep_version_check"),
        sa.CheckConstraint(
            "(claimed_by IS NULL) = (claimed_until IS NULL)", name="table_upkeep_claimed_check"
        ),
        postgresql_with={"fillfactor": 50},
    )


def downgrade() -> None:
    op.drop_table("table_upkeep")
    op.drop_column("audit", "from_version")

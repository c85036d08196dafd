"""Which tables are being forgotten, and by which instance.

The release before forgets tables without a row here; what it was cut off in has to be asked for
again, as before.

Revision: 0017, after 0016
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "forgettings",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text()),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("claimed_by", sa.Text(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("table_id", name="forgettings_pkey"),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name="forgettings_table_id_fkey", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("forgettings")

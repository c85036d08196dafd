"""Since when each post-commit hook is known.

The release before knows no hooks, and leaves their rows of `table_upkeep` alone.

Revision: 0013, after 0012
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "hooks",
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("enabled_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="hooks_pkey"),
    )


def downgrade() -> None:
    op.drop_table("hooks")
    op.execute("DELETE FROM table_upkeep WHERE kind LIKE 'hook:%'")

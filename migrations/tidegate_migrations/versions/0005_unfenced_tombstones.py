"""Tombstones that no version of the log stands for yet.

The release before goes on working on it, and takes every tombstone for one that keeps its id out.

Revision: 0005, after 0004
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("aborted_transactions", sa.Column("unfenced_after", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("aborted_transactions", "unfenced_after")

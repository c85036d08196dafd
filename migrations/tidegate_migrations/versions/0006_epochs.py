"""Epochs of tables: what an instance keeps in memory of a table's log is of one of them.

The release before does not move the epoch on when it makes a table's index anew: stop its
instances before rebuilding (docs/operations.md).

Revision: 0006, after 0005
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column(
        "tables", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )


def downgrade() -> None:
    op.drop_column("tables", "epoch")

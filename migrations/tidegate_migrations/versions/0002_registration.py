"""Tables that had a log before they had an index: their first row need not be version 0.

The release before goes on working on it: what it does not know of has a default.

Revision: 0002, after 0001
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_FOLLOWS = "previous_version = version - 1"
_CONTENT = (
    "(content IS NULL) = (content_sha256 IS NULL) "
    "AND (content IS NOT NULL OR previous_version IS NULL)"
)
_FOLLOWS_FROM_ZERO = "previous_version IS NOT DISTINCT FROM NULLIF(version - 1, -1)"


def upgrade() -> None:
    _add_first_version()
    op.drop_constraint("commits_previous_version_check", "commits")
    op.create_check_constraint("commits_previous_version_check", "commits", _FOLLOWS)
    op.create_index(
        "commits_base_key",
        "commits",
        ["table_id"],
        unique=True,
        postgresql_where=sa.text("previous_version IS NULL"),
    )
    op.alter_column("commits", "content", nullable=True)
    op.alter_column("commits", "content_sha256", nullable=True)
    op.create_check_constraint(
        "commits_content_check",
        "commits",
        _CONTENT,
    )


def downgrade() -> None:
    """Fails, with nothing changed, while a table is registered whose log starts later than at
    version 0: release 0001 cannot hold it."""
    op.drop_constraint("commits_content_check", "commits")
    op.alter_column("commits", "content_sha256", nullable=False)
    op.alter_column("commits", "content", nullable=False)
    op.drop_index("commits_base_key", "commits")
    op.drop_constraint("commits_previous_version_check", "commits")
    op.create_check_constraint("commits_previous_version_check", "commits", _FOLLOWS_FROM_ZERO)
    op.drop_constraint("tables_first_version_check", "tables")
    op.drop_column("tables", "first_version")


def _add_first_version() -> None:
    op.add_column(
        "tables",
        sa.Column("first_version", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
    )
    op.create_check_constraint(
        "tables_first_version_check",
        "tables",
        "first_version BETWEEN 0 AND greatest(latest_version, 0)",
    )

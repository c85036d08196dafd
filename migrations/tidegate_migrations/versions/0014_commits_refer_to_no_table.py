"""Commits refer to their table by its id alone.

The check of the reference looked for the table's row among all dead copies of it, of which each
commit leaves one, and they last as long as any transaction of the server. Whoever inserts a commit
holds the row's lock, and the release before does, too.

Revision: 0014, after 0013
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    # Whoever commits has its row first: no deadlock with it.
    op.execute("LOCK TABLE tables IN ACCESS EXCLUSIVE MODE")
    op.drop_constraint("commits_table_id_fkey", "commits", type_="foreignkey")


def downgrade() -> None:
    op.execute("LOCK TABLE tables IN ACCESS EXCLUSIVE MODE")
    op.create_foreign_key("commits_table_id_fkey", "commits", "tables", ["table_id"], ["id"])

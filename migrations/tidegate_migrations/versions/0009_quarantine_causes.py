"""What tables are quarantined for: something in the log, a database that was set back, an operator.

The release before writes no causes, and leaves those that are there: release nothing that its
instances quarantined before they are gone (docs/operations.md).

Revision: 0009, after 0008
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

# The release before tells the cause by the words of its reason.
_TELL = """
    UPDATE tables SET quarantine_cause = CASE
        WHEN state_reason LIKE
            '%the database was set back, by a restore or by a failover that lost commits%'
        THEN 'set-back' ELSE 'log' END
    WHERE state = 'quarantined'
"""


def upgrade() -> None:
    op.add_column("tables", sa.Column("quarantine_cause", sa.Text()))
    op.create_check_constraint(
        "tables_quarantine_cause_check",
        "tables",
        "quarantine_cause IN ('log', 'set-back', 'given-up')",
    )
    op.execute(_TELL)


def downgrade() -> None:
    op.drop_column("tables", "quarantine_cause")

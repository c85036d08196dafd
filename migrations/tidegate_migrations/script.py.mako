"""${message}

Revision: ${up_revision}, after ${down_revision | comma,n}
"""

# This runs while the previous release still serves commits on the same database, so that
# release has to work before, during and after it:
# - Add; don't rename or drop what the previous release uses. Take away one release later.
# - A new column is nullable or has a constant default (no rewrite of the table).
# - A new constraint is added NOT VALID and validated in a revision of its own.
# - A new index on a table that exists is built CONCURRENTLY, inside
#   `with op.get_context().autocommit_block():`.
# - Rows are backfilled in batches, outside the revision that adds the column.
# Waiting for a table's lock ends after env.py's LOCK_TIMEOUT; the revision is rolled back and
# can be run again.

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}
branch_labels: Sequence[str] | None = ${repr(branch_labels)}
depends_on: Sequence[str] | None = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}

"""Creations look for tables inside or around their place by an index, in whatever case.

Local folders whose names differ in case alone are one place. Their look-up went through all
locations, so that whoever has many tables made everybody's creations slow.

Revision: 0016, after 0015
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_TABLES = ("tables", "forgotten_tables")


def upgrade() -> None:
    for name in _TABLES:
        op.execute(f"CREATE INDEX {name}_folded_location_idx ON {name} (lower(location))")


def downgrade() -> None:
    for name in _TABLES:
        op.execute(f"DROP INDEX {name}_folded_location_idx")

"""Digests of the files of sidecars, and domains that were removed.

The release before writes sidecars without a digest, which are written anew once, and keeps nothing
of a domain that it removes. Which domains were removed until now is not known any more: of tables
that may have had any, no checkpoint of an earlier version is written.

Revision: 0019, after 0018
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0019"
down_revision: str | None = "0018"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "removed_domains",
        sa.Column("table_id", sa.Uuid(), nullable=False),
        sa.Column("domain", sa.Text(collation="C"), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.LargeBinary(), nullable=False),
        sa.Column("removed_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_id", "domain", name="removed_domains_pkey"),
    )
    op.create_index(
        "removed_domains_version_idx", "removed_domains", ["table_id", "removed_version"]
    )
    # No domain has this key: of a name that begins with it, the key is a digest.
    op.execute("""
        INSERT INTO removed_domains (table_id, domain, version, action, removed_version)
        SELECT id, 'sha256:', latest_version, '', latest_version FROM tables
        WHERE EXISTS (
            SELECT FROM metadata_versions WHERE table_id = tables.id
                AND position('domainMetadata'::bytea IN metadata_versions.protocol) > 0
        )
    """)
    # Last, since whoever writes a checkpoint waits behind it.
    op.add_column("checkpoint_sidecars", sa.Column("digest", sa.BigInteger()))


def downgrade() -> None:
    op.drop_table("removed_domains")
    op.drop_column("checkpoint_sidecars", "digest")

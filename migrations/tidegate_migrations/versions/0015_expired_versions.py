"""Versions may leave the index: nothing that outlives them refers to them.

Application transactions, domains and metadata outlive the versions that set them. Each version that
goes would be looked for in all of them, which have no index by version. Of what comes in thousands
with a commit, or with versions that go, nothing refers to the table's row either, as 0014 says.

Revision: 0015, after 0014
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_LEFT = ("app_transactions", "domain_metadata", "metadata_versions")
_IDS = ("past_commits", "forgotten_commits")
_NOTHING = (
    '{"operation": null, "operation_parameters": {}, "operation_metrics": {}, '
    '"engine_info": null, "user_metadata": null, "tags": {}}'
)


def upgrade() -> None:
    # Whoever commits has its row first: no deadlock with it.
    op.execute("LOCK TABLE tables IN ACCESS EXCLUSIVE MODE")
    for name in _LEFT:
        op.drop_constraint(f"{name}_version_fkey", name)
    name = "metadata_versions"
    op.create_foreign_key(f"{name}_table_id_fkey", name, "tables", ["table_id"], ["id"])
    op.drop_constraint("past_commits_table_id_fkey", "past_commits", type_="foreignkey")


def downgrade() -> None:
    op.execute("LOCK TABLE tables IN ACCESS EXCLUSIVE MODE")
    op.create_foreign_key(
        "past_commits_table_id_fkey", "past_commits", "tables", ["table_id"], ["id"]
    )
    op.drop_constraint("metadata_versions_table_id_fkey", "metadata_versions", type_="foreignkey")
    # The release before looks for the version of each, and reads the details of each commit.
    for name in _LEFT:
        op.execute(f"""
            UPDATE {name} SET version = first_version FROM tables
            WHERE tables.id = table_id AND version < first_version
        """)
        op.create_foreign_key(
            f"{name}_version_fkey",
            name,
            "commits",
            ["table_id", "version"],
            ["table_id", "version"],
        )
    for name in _IDS:
        op.execute(f"UPDATE {name} SET details = '{_NOTHING}' WHERE CAST(details AS text) = '{{}}'")

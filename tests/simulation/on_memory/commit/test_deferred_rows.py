"""The tests of `tests/service/commit/groups/test_deferred_rows.py`, over the index in memory.

What is written to Postgres in which order is not among them.
"""

from tests.service.commit.groups.test_deferred_rows import *  # noqa: F403

del test_rows_are_written_once_their_files_are_put  # noqa: F821

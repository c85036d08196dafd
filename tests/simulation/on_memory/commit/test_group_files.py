"""`tests/service/commit/groups/test_group_files.py`, over the index in memory."""

from tests.service.commit.groups.test_group_files import *  # noqa: F403

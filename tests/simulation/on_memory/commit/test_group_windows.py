"""`tests/service/commit/groups/test_group_windows.py`, over the index in memory."""

from tests.service.commit.groups.test_group_windows import *  # noqa: F403

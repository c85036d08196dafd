"""`tests/service/commit/groups/test_groups.py`, over the index in memory."""

from tests.service.commit.groups.test_groups import *  # noqa: F403

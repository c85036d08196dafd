"""`tests/service/commit/groups/test_buffered_files.py`, over the index in memory."""

from tests.service.commit.groups.test_buffered_files import *  # noqa: F403

"""`tests/service/commit/test_commit_path.py`, over the index in memory."""

from tests.service.commit.test_commit_path import *  # noqa: F403

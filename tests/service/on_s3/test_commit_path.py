"""The tests of `tests/service/commit/test_commit_path.py`, on S3."""

from tests.service.commit.test_commit_path import *  # noqa: F403

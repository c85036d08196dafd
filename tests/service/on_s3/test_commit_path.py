"""The tests of `tests/service/test_commit_path.py`, on S3."""

from tests.service.test_commit_path import *  # noqa: F403

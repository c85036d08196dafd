"""The tests of `tests/service/test_foreign_commits.py`, on S3."""

from tests.service.test_foreign_commits import *  # noqa: F403

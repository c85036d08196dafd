"""The tests of `tests/service/log/test_foreign_commits.py`, on S3."""

from tests.service.log.test_foreign_commits import *  # noqa: F403

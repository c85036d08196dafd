"""The tests of `tests/service/log/foreign/test_foreign_commits.py`, on S3."""

from tests.service.log.foreign.test_foreign_commits import *  # noqa: F403

"""`tests/service/log/foreign/test_foreign_commits.py`, over the index in memory."""

from tests.service.log.foreign.test_foreign_commits import *  # noqa: F403

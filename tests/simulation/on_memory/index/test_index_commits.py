"""`tests/service/index/test_index_commits.py`, over the index in memory."""

from tests.service.index.test_index_commits import *  # noqa: F403

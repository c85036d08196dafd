"""`tests/service/index/test_index_publishing.py`, over the index in memory."""

from tests.service.index.test_index_publishing import *  # noqa: F403

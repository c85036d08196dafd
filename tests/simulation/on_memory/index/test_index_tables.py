"""`tests/service/index/test_index_tables.py`, over the index in memory."""

from tests.service.index.test_index_tables import *  # noqa: F403

"""`tests/service/index/locking/test_index_locking.py`, over the index in memory."""

from tests.service.index.locking.test_index_locking import *  # noqa: F403

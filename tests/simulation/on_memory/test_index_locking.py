"""The tests of `tests/service/index/test_index_locking.py`, over the index in memory."""

from tests.service.index.test_index_locking import *  # noqa: F403

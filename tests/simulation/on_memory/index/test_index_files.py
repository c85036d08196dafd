"""`tests/service/index/test_index_files.py`, over the index in memory."""

from tests.service.index.test_index_files import *  # noqa: F403

"""`tests/service/log/test_older_ids.py`, over the index in memory."""

from tests.service.log.test_older_ids import *  # noqa: F403

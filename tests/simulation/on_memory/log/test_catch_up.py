"""`tests/service/log/watched/test_catch_up.py`, over the index in memory."""

from tests.service.log.watched.test_catch_up import *  # noqa: F403

"""`tests/service/log/test_hidden_log.py`, over the index in memory."""

from tests.service.log.test_hidden_log import *  # noqa: F403

"""`tests/service/log/test_at_the_logs_end.py`, over the index in memory."""

from tests.service.log.test_at_the_logs_end import *  # noqa: F403

"""`tests/service/log/test_used_places.py`, over the index in memory."""

from tests.service.log.test_used_places import *  # noqa: F403

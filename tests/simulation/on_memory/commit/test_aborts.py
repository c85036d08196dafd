"""`tests/service/commit/outcomes/test_aborts.py`, over the index in memory."""

from tests.service.commit.outcomes.test_aborts import *  # noqa: F403

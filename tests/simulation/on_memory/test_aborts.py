"""The tests of `tests/service/commit/test_aborts.py`, over the index in memory."""

from tests.service.commit.test_aborts import *  # noqa: F403

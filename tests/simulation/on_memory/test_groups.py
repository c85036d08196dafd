"""The tests of `tests/service/commit/test_groups.py`, over the index in memory."""

from tests.service.commit.test_groups import *  # noqa: F403

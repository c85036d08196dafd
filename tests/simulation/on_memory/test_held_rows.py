"""The tests of `tests/service/commit/test_held_rows.py`, over the index in memory."""

from tests.service.commit.test_held_rows import *  # noqa: F403

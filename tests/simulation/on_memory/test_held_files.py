"""The tests of `tests/service/commit/test_held_files.py`, over the index in memory."""

from tests.service.commit.test_held_files import *  # noqa: F403

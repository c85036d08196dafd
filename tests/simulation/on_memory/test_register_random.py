"""The tests of `tests/service/tables/test_register_random.py`, over the index in memory."""

from tests.service.tables.test_register_random import *  # noqa: F403

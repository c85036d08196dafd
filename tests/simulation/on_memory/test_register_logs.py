"""The tests of `tests/service/tables/test_register_logs.py`, over the index in memory."""

from tests.service.tables.test_register_logs import *  # noqa: F403

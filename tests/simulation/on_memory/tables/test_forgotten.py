"""`tests/service/tables/test_forgotten.py`, over the index in memory."""

from tests.service.tables.test_forgotten import *  # noqa: F403

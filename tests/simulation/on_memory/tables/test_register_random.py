"""`tests/service/tables/registering/test_register_random.py`, over the index in memory."""

from tests.service.tables.registering.test_register_random import *  # noqa: F403

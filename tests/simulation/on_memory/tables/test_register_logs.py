"""`tests/service/tables/registering/test_register_logs.py`, over the index in memory."""

from tests.service.tables.registering.test_register_logs import *  # noqa: F403

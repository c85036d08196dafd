"""`tests/service/tables/test_metadata_ids.py`, over the index in memory."""

from tests.service.tables.test_metadata_ids import *  # noqa: F403

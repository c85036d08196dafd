"""`tests/service/maintenance/test_rebuild.py`, over the index in memory."""

from tests.service.maintenance.test_rebuild import *  # noqa: F403

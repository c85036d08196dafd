"""`tests/service/catalog_managed/set_back/test_set_back_checks.py`, over the index in memory."""

from tests.service.catalog_managed.set_back.test_set_back_checks import *  # noqa: F403

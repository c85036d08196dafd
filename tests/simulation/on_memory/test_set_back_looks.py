"""The tests of `tests/service/catalog_managed/test_set_back_looks.py`, over the index in memory."""

from tests.service.catalog_managed.test_set_back_looks import *  # noqa: F403

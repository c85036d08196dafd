"""The tests of `tests/service/catalog_managed/test_known_losses.py`, over the index in memory."""

from tests.service.catalog_managed.test_known_losses import *  # noqa: F403

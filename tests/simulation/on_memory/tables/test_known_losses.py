"""`tests/service/catalog_managed/failover/test_known_losses.py`, over the index in memory."""

from tests.service.catalog_managed.failover.test_known_losses import *  # noqa: F403

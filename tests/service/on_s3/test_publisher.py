"""The tests of `tests/service/catalog_managed/test_publisher.py`, on S3."""

from tests.service.catalog_managed.test_publisher import *  # noqa: F403

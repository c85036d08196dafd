"""The tests of `tests/service/test_publisher.py`, on S3."""

from tests.service.test_publisher import *  # noqa: F403

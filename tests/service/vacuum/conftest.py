"""A service for each module: a table that other tests broke would end the vacuums of all others."""

import pytest

from tests.servers.server import shared

shared_server = pytest.fixture(scope="module")(shared)

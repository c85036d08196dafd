"""The store in memory behind the `Storage` port: the contract of all stores."""

import time

import pytest

from tests.service.log.log_contract import LogContract
from tests.simulation.ports.network import NoNetwork
from tests.simulation.ports.store import MemoryStorage, Store

pytestmark = pytest.mark.anyio


class TestContract(LogContract):
    @pytest.fixture
    def store(self):
        return Store(time.time)

    @pytest.fixture
    def storage(self, store):
        return MemoryStorage(store, NoNetwork())

    @pytest.fixture
    def location(self):
        return "s3://lake/main/air/flights"

    @pytest.fixture
    def plant(self, store):
        return store.plant

"""An object store that does not answer holds up the tables that are in it, and nobody else's."""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.servers.postgres import cloned
from tests.servers.store_proxy import StoreFault, StoreProxy
from tests.service.tenants.rig import Service, attacked, tenants
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.settings import Settings

TABLES = 24
"""More than there are groups that may wait for a store."""


@pytest.fixture
def service(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path: Path,
    store_proxy: StoreProxy,
    s3_prefix: str,
) -> Iterator[Service]:
    """One whose warehouse is local, and in which tables may be on S3, behind the proxy."""
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path,
            port=0,
            allowed_locations=(s3_prefix,),
            storage_options=store_proxy.storage_options,
        )
        with tenants(settings) as service:
            yield service


def append(service: Service, table: str) -> int:
    body = proposal(add(f"month=5/{os.urandom(8).hex()}"))
    return service.client.post(f"{service.api}/tables/{table}/commits", json=body).status_code


@pytest.mark.parametrize("call", ["PUT", "GET"])
def test_commits_to_another_store_go_on(service, store_proxy, s3_prefix, call):
    names = [f"main.slow.t{number}" for number in range(TABLES)]
    for name in names:
        body = table_body(name, location=f"{s3_prefix}/{name}")
        service.created(body)
    plain = table_body("main.other.plain")
    service.created(plain)
    turns = itertools.cycle(names)
    # A version that the index does not have is looked for in the log.
    fields = {"read_version": 5} if call == "GET" else {}

    def attack(_):
        """The service goes on with what nobody waits for any more."""
        with suppress(httpx.TimeoutException):
            body = proposal(add(f"month=5/{os.urandom(8).hex()}"), **fields)
            url = f"{service.api}/tables/{next(turns)}/commits"
            service.client.post(url, json=body, timeout=2)

    store_proxy.always(StoreFault.SLOW, method=call, path=r"/[0-9]{20}\.json")
    try:
        with attacked(service, attack, at_once=TABLES) as measured:
            store_proxy.wait_held(5)
            assert [append(service, "main.other.plain") for _ in range(5)] == [201] * 5
            measured.check(grown_mib=128)
            store_proxy.heal()
    finally:
        store_proxy.heal()
    assert store_proxy.count(call) > 5

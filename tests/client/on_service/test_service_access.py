"""Tokens, against the real service: what the client raises where one is missing or too small."""

import pytest

import tidegate
from tests.client import answers
from tests.client.tables import data_file
from tests.service.catalog_managed.guarded import Guarded, revoke_token

TABLE = "main.air.flights"


@pytest.fixture
def guarded(start_service, database_url) -> Guarded:
    return Guarded(start_service(auth="tokens").url, database_url)


def test_each_role_may_what_it_may(guarded):
    with tidegate.connect(guarded.url, token=guarded.token("writer", "main.air")) as lake:
        table = lake.create_table(TABLE, schema=answers.SCHEMA, partition_by=["month"])
        with table.transaction() as txn:
            txn.add([data_file("a")])
            txn.commit("WRITE")
        assert table.head().version == 1
        with pytest.raises(tidegate.PermissionDenied) as denied:
            lake.forget_table(TABLE)
        assert (denied.value.code, denied.value.status) == ("forbidden", 403)
        assert denied.value.definite
    with tidegate.connect(guarded.url, token=guarded.token("reader", TABLE)) as lake:
        assert [found.name for found in lake.tables()] == [TABLE]
        with lake.table(TABLE).transaction() as txn:
            txn.add([data_file("b")])
            with pytest.raises(tidegate.PermissionDenied) as denied:
                txn.commit("WRITE")
        assert denied.value.definite
    with (
        tidegate.connect(guarded.url, token=guarded.token("admin", "other")) as lake,
        pytest.raises(tidegate.TableNotFound),
    ):
        lake.table(TABLE)


def test_without_a_valid_one_nothing_goes(guarded, monkeypatch):
    monkeypatch.delenv("TIDEGATE_TOKEN", raising=False)
    token = guarded.token("admin", "*")
    with tidegate.connect(guarded.url) as lake, pytest.raises(tidegate.Unauthenticated) as none:
        lake.table(TABLE)
    assert none.value.code == "unauthenticated"
    revoke_token(guarded.database_url, token)
    with (
        tidegate.connect(guarded.url, token=token) as lake,
        pytest.raises(tidegate.Unauthenticated) as revoked,
    ):
        lake.create_table(TABLE, schema=answers.SCHEMA)
    assert revoked.value.definite
    assert token.rpartition("_")[2] not in f"{revoked.value}{revoked.value!r}{lake!r}"

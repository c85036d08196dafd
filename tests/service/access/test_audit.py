"""The audit trail: who did what, in the same transaction, for ever."""

import psycopg
import pytest
from psycopg import errors

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.catalog_managed.guarded import Guarded, id_of, revoke_token, rows
from tests.service.commit.committing import quarantine

TRAIL = "SELECT principal, deed, table_name, version, transaction_id, request_id FROM audit"


@pytest.fixture
def guarded(start_service, database_url) -> Guarded:
    return Guarded(start_service(auth="tokens").url, database_url)


def trail(url: str) -> list[tuple[object, ...]]:
    """Of tables; what happened to tokens is looked at by itself."""
    return rows(url, f"{TRAIL} WHERE table_id IS NOT NULL ORDER BY id")


def sent(request_id: str) -> dict[str, str]:
    return {"X-Request-Id": request_id}


def test_a_table_s_life(guarded):
    with guarded.client(guarded.token("admin", "*", label="ada")) as client:
        client.post("/tables", json=table_body(), headers=sent("r-create"))
        table_id = client.get(f"/tables/{TABLE}").json()["id"]
        body = proposal(add(), transaction_id="t-1")
        assert client.post(
            f"/tables/{TABLE}/commits", json=body, headers=sent("r-commit")
        ).is_success
        client.post(f"/tables/{TABLE}/transactions/t-2/abort", headers=sent("r-abort"))
        client.post(f"/tables/{TABLE}/transactions/t-2/abort", headers=sent("r-again"))
        made = rows(
            guarded.database_url,
            "SELECT version, principal, request_id FROM commits ORDER BY version",
        )
        assert made == [(0, "ada", "r-create"), (1, "ada", "r-commit"), (2, "ada", "r-abort")]
        first = rows(guarded.database_url, "SELECT transaction_id FROM commits ORDER BY version")
        assert trail(guarded.database_url) == [
            ("ada", "create", TABLE, 0, None, "r-create"),
            ("ada", "abort", TABLE, None, "t-2", "r-abort"),
        ]

        client.delete(f"/tables/{TABLE}", headers=sent("r-forget"))

    assert trail(guarded.database_url)[2:] == [
        ("ada", "commit", TABLE, 0, first[0][0], "r-create"),
        ("ada", "commit", TABLE, 1, "t-1", "r-commit"),
        ("ada", "commit", TABLE, 2, first[2][0], "r-abort"),
        ("ada", "forget", TABLE, 2, None, "r-forget"),
    ]
    found = rows(
        guarded.database_url, "SELECT DISTINCT table_id::text FROM audit WHERE table_id IS NOT NULL"
    )
    assert found == [(table_id,)]


def test_what_was_refused_leaves_no_row(guarded):
    with guarded.client(guarded.token("reader", "*")) as client:
        client.post("/tables", json=table_body())
        client.delete(f"/tables/{TABLE}")
    assert trail(guarded.database_url) == []


def test_tokens_are_in_it_by_their_ids(guarded):
    token = guarded.token("reader", "main")
    assert revoke_token(guarded.database_url, token)
    assert not revoke_token(guarded.database_url, token)
    found = rows(guarded.database_url, "SELECT principal, deed, token_id FROM audit ORDER BY id")
    assert found == [
        ("operator", "create-token", id_of(token)),
        ("operator", "revoke-token", id_of(token)),
    ]


def test_without_authentication_it_is_anybody(api, database_url):
    api.post("/tables", json=table_body(), headers=sent("r-1"))
    assert trail(database_url) == [("anonymous", "create", TABLE, 0, None, "r-1")]


@pytest.mark.anyio
async def test_a_quarantine_is_the_service_s_own(world, database_url):
    table = await world.create(catalog_managed=True)
    for reason in ("the first reason", "another"):
        await quarantine(world.context.index, table, reason)
    found = rows(database_url, f"{TRAIL} WHERE deed = 'quarantine'")
    assert found == [("tidegate", "quarantine", table.name, None, None, None)]


@pytest.mark.anyio
async def test_a_change_that_is_rolled_back_is_not_in_it(world, database_url):
    table = await world.create()
    before = trail(database_url)
    async with world.context.index.commit_section(table.id) as section:
        await section.quarantine("left without saving")
    assert trail(database_url) == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET principal = 'somebody else'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "DELETE FROM audit WHERE false",
    ],
)
def test_rows_are_only_ever_added(api, database_url, change):
    api.post("/tables", json=table_body())
    with psycopg.connect(database_url) as connection, pytest.raises(errors.Error) as refused:
        connection.execute(change)
    assert refused.value.diag.constraint_name == "audit_append_only"


def test_a_rebuild_keeps_who_made_what(guarded):
    with guarded.client(guarded.token("admin", "*", label="ada")) as client:
        client.post("/tables", json=table_body(), headers=sent("r-create"))
        client.post(f"/tables/{TABLE}/commits", json=proposal(add()), headers=sent("r-commit"))
    with guarded.client(guarded.token("admin", "*", label="bob")) as client:
        assert client.post(f"/tables/{TABLE}/rebuild", headers=sent("r-rebuild")).is_success
    made = rows(
        guarded.database_url, "SELECT version, principal, request_id FROM commits ORDER BY version"
    )
    assert made == [(0, "ada", "r-create"), (1, "ada", "r-commit")]
    assert trail(guarded.database_url) == [
        ("ada", "create", TABLE, 0, None, "r-create"),
        ("bob", "rebuild", TABLE, 1, None, "r-rebuild"),
    ]

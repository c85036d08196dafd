"""The runbook of `docs/maintenance.md`, played: what it says to type is typed, and what it says
will be seen is seen."""

import asyncio
import re
import subprocess
from contextlib import contextmanager

import httpx
import psycopg

from tests.builders.flights import add, proposal, table_body
from tests.repository import ROOT
from tests.servers.postgres import url_of
from tests.service.catalog_managed.restoring import backups
from tests.service.catalog_managed.set_back.cleaning import A_DAY, cleaned_up
from tests.service.process.cli.command_line import invoke
from tests.service.unity_catalog.stock import StockClient
from tests.service.unity_catalog.stock import add as stock_add
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.embedded.cluster import environment, programs

TABLES = {"main.air.managed": True, "main.air.plain": False}
RESTORED = "restored_by_hand"


def commands() -> list[str]:
    """What the runbook says to run for every table."""
    text = (ROOT / "docs" / "maintenance.md").read_text()
    runbook = text.partition("### Runbook: after a restore")[2].partition("\n### ")[0]
    block = re.search(r"```\n(.*?)```", runbook, re.S)
    assert block is not None
    lines = [line.strip() for line in block[1].strip().splitlines()]
    assert [line.split()[:2] for line in lines] == [["tidegate", "rebuild"], ["tidegate", "verify"]]
    return lines


def run(*arguments: object) -> None:
    program, *others = arguments
    subprocess.run(
        [programs() / str(program), *map(str, others)],
        check=True,
        capture_output=True,
        cwd="/",
        env=environment(),
    )


@contextmanager
def restored(server_url: str, dump):
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {RESTORED} TEMPLATE template0")
    try:
        url = url_of(server_url, RESTORED)
        run("pg_restore", "--dbname", url, "--exit-on-error", dump)
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {RESTORED} WITH (FORCE)")


def published(client, table):
    head = client.get(f"/tables/{table}").json()
    return head["published_version"] == head["latest_version"]


def test_after_a_restore(start_service, database_url, postgres_server, tmp_path):
    before = start_service()
    answers = {}
    with httpx.Client(base_url=f"{before.url}/api/v1", timeout=40.0) as client:
        for table, managed in TABLES.items():
            made = table_body(table, catalog_managed=managed)
            client.post("/tables", json=made).raise_for_status()
            answers[table] = [committed(client, table, name) for name in ("a", "b")]
        caught_up(client, *TABLES)
        dump = tmp_path / "index.dump"
        run("pg_dump", "--format=custom", "--file", dump, database_url)
        for table in TABLES:
            answers[table] += [committed(client, table, name) for name in ("c", "d")]
        caught_up(client, *TABLES)
    before.stop()
    before.join()

    with restored(postgres_server.url, dump) as url:
        after = start_service(database_url=url)
        with httpx.Client(base_url=f"{after.url}/api/v1", timeout=40.0) as client:
            refused = client.post("/tables/main.air.managed/commits", json=body("e"))
            assert (refused.status_code, refused.json()["code"]) == (503, "table-quarantined")
            assert "`rebuild`" in refused.json()["detail"]
            assert committed(client, "main.air.plain", "e")["version"] == 5
            for table in TABLES:
                for line in commands():
                    words = line.replace("main.air.flights", table).split()[1:]
                    done = invoke(*words, "--url", after.url)
                    assert done.exit_code == 0, done.output
                    assert ("no difference" in done.stdout) == (words[0] == "verify")
                for first in answers[table]:
                    again = committed(client, table, first["transaction_id"])
                    assert (again["version"], again["timestamp"], again["replayed"]) == (
                        first["version"],
                        first["timestamp"],
                        True,
                    )
            assert committed(client, "main.air.managed", "e")["version"] == 5
        after.stop()
        after.join()


def test_after_a_restore_behind_a_clean_up(start_service, database_url, postgres_server, tmp_path):
    table = "main.air.managed"
    before = start_service()
    with httpx.Client(base_url=f"{before.url}/api/v1", timeout=40.0) as client:
        made = table_body(table, catalog_managed=True, properties=A_DAY)
        client.post("/tables", json=made).raise_for_status()
        answers = [committed(client, table, name) for name in ("a", "b")]
        caught_up(client, table)
        dump = tmp_path / "index.dump"
        run("pg_dump", "--format=custom", "--file", dump, database_url)
        answers += [committed(client, table, name) for name in ("c", "d", "e")]
        caught_up(client, table)
    before.stop()
    before.join()
    asyncio.run(clean_up(postgres_server.url, database_url, tmp_path, table, to=4))

    with restored(postgres_server.url, dump) as url:
        after = start_service(database_url=url)
        with httpx.Client(base_url=f"{after.url}/api/v1", timeout=40.0) as client:
            refused = client.post(f"/tables/{table}/commits", json=body("f"))
            assert (refused.status_code, refused.json()["code"]) == (503, "table-quarantined")
            assert "`rebuild`" in refused.json()["detail"]
            for line in commands():
                words = line.replace("main.air.flights", table).split()[1:]
                done = invoke(*words, "--url", after.url)
                assert done.exit_code == 0, done.output
                told = "versions 3 to 3 were cleaned up" in done.stdout
                assert told == (words[0] == "rebuild")
                assert ("no difference" in done.stdout) == (words[0] == "verify")
            for first in answers:
                if first["version"] == 3:
                    continue
                again = committed(client, table, first["transaction_id"])
                assert (again["version"], again["timestamp"], again["replayed"]) == (
                    first["version"],
                    first["timestamp"],
                    True,
                )
            assert committed(client, table, "f")["version"] == 6
        after.stop()
        after.join()


def test_stock_tables_after_a_restore(start_service, database_url, postgres_server, tmp_path):
    before = start_service()
    stock = StockClient(before.url)
    old = stock.create("old")
    of_stock(old)
    dump = tmp_path / "index.dump"
    run("pg_dump", "--format=custom", "--file", dump, database_url)
    of_stock(old)
    ours = proposal(stock_add(), transaction_id="ours")
    assert stock.own.post("/tables/main.air.old/commits", json=ours).is_success
    new = stock.create("new")
    last = [(table, of_stock(table)) for table in (old, new)]
    before.stop()
    before.join()

    with restored(postgres_server.url, dump) as url:
        after = start_service(database_url=url)
        stock = StockClient(after.url)
        refused = stock.own.post("/tables/main.air.old/commits", json=ours)
        assert (refused.status_code, refused.json()["code"]) == (503, "table-quarantined")
        assert "`rebuild`" in refused.json()["detail"]
        for line in commands():
            done = invoke(
                *line.replace("main.air.flights", "main.air.old").split()[1:], "--url", after.url
            )
            assert done.exit_code == 0, done.output
        marks = ("--catalog-managed", "--by-marks", "--url", after.url)
        done = invoke("table", "register", "main.air.new", new.location, *marks)
        assert done.exit_code == 0, done.output
        for table, staged in last:
            version, table.client = staged.said["version"], stock
            landed = table.propose(staged)
            assert landed.is_success, landed.text
            assert landed.json()["latest-table-version"] == version
            assert table.load()["metadata"]["table-uuid"] == table.table_id
            of_stock(table)
        again = stock.own.post("/tables/main.air.old/commits", json=ours).json()
        assert (again["version"], again["replayed"]) == (3, True)
        after.stop()
        after.join()


async def clean_up(server_url, url, folder, name, *, to):
    async with backups(server_url, folder) as made:
        world = made.instance(url)
        table = await get_table(world.context, name)
        await cleaned_up(world, url, made.storage, table, to=to)


def body(name):
    return proposal(add(f"month=5/{name}.parquet"), transaction_id=name)


def committed(client, table, name):
    answer = client.post(f"/tables/{table}/commits", json=body(name))
    assert answer.is_success, answer.text
    return answer.json()


def of_stock(table):
    """A commit of a stock client, which has landed as the next version."""
    head = table.client.own.get(f"/tables/main.air.{table.name}").json()
    at = head["latest_timestamp"] + 1
    return table.commit(head["latest_version"] + 1, inCommitTimestamp=at)


def caught_up(client, *tables):
    while not all(published(client, table) for table in tables):
        pass

"""What stock engines send: tables, commits and columns that they say, as large as they may be."""

import itertools
import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.service.tenants.rig import ATTACKERS_SCHEMA, MIB, Service, attacked
from tests.service.unity_catalog.stock import (
    FEATURES,
    Lines,
    Staged,
    StockClient,
    StockTable,
    commit_info,
    content,
    dashed,
    metadata,
)

CATALOG, _, SCHEMA = ATTACKERS_SCHEMA.partition(".")
FILE_BYTES = 4 * MIB
"""A staged file that is kept as it is: a larger one is compressed."""
EXPRESSIONS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": list(FEATURES[:2]),
    "writerFeatures": [*FEATURES, "checkConstraints", "generatedColumns"],
}
GROWN_MIB = 320
GROWN_UNREAD_MIB = 500
PATIENTLY = httpx.Timeout(300)
"""A machine may stand still for longer than a deadline."""
MANY = httpx.Limits(max_connections=400, max_keepalive_connections=400)


@pytest.fixture(scope="module")
def deadline_s() -> float:
    """Those who wait for their turn wait no longer."""
    return 12.0


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    return {"auth": "tokens"}


@pytest.fixture(scope="module")
def stock(service: Service) -> Iterator[StockClient]:
    """The attacker's."""
    token = service.client.headers["authorization"].removeprefix("Bearer ")
    client = StockClient(service.api.removesuffix("/api/v1"), token=token, schema=SCHEMA)
    client.http.close()
    client.http = httpx.Client(
        base_url=client.http.base_url, headers=client.http.headers, timeout=PATIENTLY, limits=MANY
    )
    with client.http, client.own:
        yield client


def struct(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields}


def column(name: str, **about: Any) -> dict[str, Any]:
    return {"name": name, "type": "long", "nullable": True, "metadata": about}


def first_version(table: StockTable, columns: dict[str, Any], **configuration: str) -> None:
    own = metadata(table.table_id, **configuration)
    own["metaData"]["schemaString"] = json.dumps(columns)
    lines: Lines = [commit_info(0), {"protocol": EXPRESSIONS}, own]
    (table.log / f"{0:020d}.json").write_bytes(content(lines))


def a_long_constraint(number: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Within what is read of constraints."""
    text = f"a + {number} > 2 or " * 1150 + "a = 1"
    return struct([column("a")]), {"delta.constraints.long": text}


def many_generated_columns(number: int) -> tuple[dict[str, Any], dict[str, str]]:
    plain = [column(f"c{each}") for each in range(4_950)]
    made = [
        column(f"g{each}", **{"delta.generationExpression": f"c{each} + {number}"})
        for each in range(len(plain))
    ]
    return struct(plain + made), {}


@pytest.mark.parametrize(
    ("define", "at_once"), [(a_long_constraint, 16), (many_generated_columns, 4)]
)
def test_first_versions_with_expressions(service, stock, define, at_once):
    """Three lines, other ones each time: what was read is not remembered. They are refused behind
    that, for a hook that there is not."""
    numbers = itertools.count()

    def attack(_: Service) -> int:
        columns, configuration = define(next(numbers))
        table = stock.stage_table()
        first_version(table, columns, **configuration, **{"tidegate.hooks": "none"})
        protocol = dashed(EXPRESSIONS)
        return stock.create_staged(table, columns=columns, protocol=protocol).status_code

    with attacked(service, attack, at_once=at_once) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) <= {400, 503}


def test_stagings(service, stock):
    """Each asks the index for one name, and waits for a connection to it among its own."""
    url = f"{stock.schema_path}/staging-tables"
    numbers = itertools.count()

    def attack(_: Service) -> int:
        return stock.http.post(url, json={"name": f"s{next(numbers)}"}).status_code

    with attacked(service, attack, at_once=120) as measured:
        measured.check(grown_mib=64)
    assert set(measured.answers) == {200}


def of_short_lines(size: int, line: bytes) -> bytes:
    head = content([commit_info(1)])
    return head + line * ((size - len(head)) // len(line))


def asked(table: StockTable, staged: Staged) -> int:
    return table.propose(staged).status_code


@pytest.mark.parametrize("is_taken", [False, True], ids=["next", "taken"])
def test_long_staged_files(service, stock, is_taken):
    """Requests of 300 bytes, each about a file of four MiB: of the next version, which they never
    become, and of one that another commit is."""
    table = stock.create()
    body = of_short_lines(FILE_BYTES, b'{"txn":{"appId":"a","version":1}}\n')
    staged = table.stage_bytes(1, body, {})
    if is_taken:
        table.commit(1)

    with attacked(service, lambda _: asked(table, staged), at_once=150) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) <= {400, 409, 500, 503}


@pytest.mark.parametrize("is_own", [True, False], ids=["landed", "taken"])
def test_late_commits(service, stock, is_own):
    """Sent again and again, of a version that is this very commit, or another one."""
    table = stock.create()
    staged = table.stage(1)
    landing = staged if is_own else table.stage(1)
    assert asked(table, landing) == 200

    with attacked(service, lambda _: asked(table, staged), at_once=150) as measured:
        measured.check(grown_mib=64)
    answer = 200 if is_own else 409
    assert answer in measured.answers
    assert set(measured.answers) <= {answer, 429, 500, 503}


def test_bodies_of_many_values(service, stock):
    """Columns that are said, each of which is renamed."""
    table = stock.create()
    columns = struct([{"type": {"type": {}}}] * 6_000)
    body = json.dumps({"updates": [{"action": "set-columns", "columns": columns}]}).encode()
    headers = {"Content-Type": "application/json"}

    def attack(_: Service) -> int:
        return stock.http.post(table.path, content=body, headers=headers).status_code

    with attacked(service, attack, at_once=24) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert 400 in measured.answers
    assert set(measured.answers) <= {400, 429, 500, 503}


@pytest.fixture(scope="module")
def listed(service: Service) -> dict[str, Any]:
    """What to ask for to list tables with megabytes of columns."""
    for number in range(60):
        name = f"{CATALOG}.{SCHEMA}.listed{number}"
        body = {"name": name, "schema": struct([column(f"c{each}") for each in range(1000)])}
        service.created(body)
    return {"catalog_name": CATALOG, "schema_name": SCHEMA, "max_results": 1000}


def test_pages_of_wide_tables_are_short(stock, listed):
    found: list[str] = []
    token: str | None = ""
    while token is not None:
        page = stock.http.get("/tables", params={**listed, "page_token": token})
        assert len(page.content) < 4 * MIB
        answer = page.json()
        assert answer["tables"]
        found += [table["name"] for table in answer["tables"]]
        token = answer["next_page_token"]
    assert found == sorted(set(found))
    assert {f"listed{number}" for number in range(60)} <= set(found)


def test_pages_that_nobody_reads(service, stock, listed):
    parts = urlsplit(service.api)
    query = "&".join(f"{name}={value}" for name, value in listed.items())
    lines = (
        f"GET /api/2.1/unity-catalog/tables?{query} HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Authorization: {service.client.headers['authorization']}",
    )
    request = "\r\n".join((*lines, "", "")).encode()

    def attack(_: Service) -> str:
        with socket.socket() as unread:
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect((parts.hostname, parts.port))
            unread.sendall(request)
            time.sleep(10)
        return "unread"

    with attacked(service, attack, at_once=100) as measured:
        measured.check(grown_mib=GROWN_UNREAD_MIB)

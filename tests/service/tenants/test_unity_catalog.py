"""What stock engines send: tables, commits and columns that they say, as large as they may be."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.tenants.rig import ATTACKERS_SCHEMA, Service, attacked
from tests.service.unity_catalog.stock import (
    FEATURES,
    Lines,
    StockClient,
    StockTable,
    commit_info,
    content,
    dashed,
    metadata,
)

pytestmark = pytest.mark.alone

CATALOG, _, SCHEMA = ATTACKERS_SCHEMA.partition(".")
EXPRESSIONS = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": list(FEATURES[:2]),
    "writerFeatures": [*FEATURES, "checkConstraints", "generatedColumns"],
}
GROWN_MIB = 300
PATIENTLY = httpx.Timeout(120)
MANY = httpx.Limits(max_connections=400, max_keepalive_connections=400)


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
    assert set(measured.answers) == {400}

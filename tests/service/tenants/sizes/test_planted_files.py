"""Files that another put into the log of a table of its own, made to take long to be parsed."""

import itertools
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.tenants.rig import MIB, Service, attacked

GROWN_MIB = 400
"""What a file of short lines becomes, a hundred times its bytes."""


def made(service: Service, name: str, *, catalog_managed: bool) -> tuple[str, Path]:
    """The URL of a new table, and the folder of its log."""
    answer = service.created(table_body(name, catalog_managed=catalog_managed))
    folder = Path(unquote(urlsplit(answer.json()["location"]).path))
    return f"{service.api}/tables/{name}", folder / "_delta_log"


def short_lines(size: int) -> bytes:
    return b'{"commitInfo":{"txnId":"x"}}\n' + b'{"a":{}}\n' * (size // 9)


def append(service: Service, url: str) -> int:
    return service.client.post(f"{url}/commits", json=proposal(add("month=5/a"))).status_code


def test_behind_a_plain_table(service):
    """Several, each below what is compressed as it is read."""
    names = itertools.count()

    def attack(_):
        url, log = made(service, f"main.other.lines_{next(names)}", catalog_managed=False)
        for version in range(1, 7):
            (log / f"{version:020}.json").write_bytes(short_lines(2 * MIB))
        return append(service, url)

    with attacked(service, attack) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert set(measured.answers) <= {201, 503}


KINDS = {
    "short lines": lambda: short_lines(2 * MIB),
    "values of many": lambda: b"".join(
        json.dumps(add(f"month=5/{at}", tags={str(n): "" for n in range(150_000)})).encode() + b"\n"
        for at in range(4)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_way_of_publishing(service, kind):
    content, names = KINDS[kind](), itertools.count()

    def attack(_):
        name = f"main.other.{kind.replace(' ', '_')}_{next(names)}"
        url, log = made(service, name, catalog_managed=True)
        # The publisher may not have made it yet.
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{1:020}.json").write_bytes(content)
        return append(service, url)

    with attacked(service, attack) as measured:
        measured.check(grown_mib=GROWN_MIB)


def test_a_pointer_to_a_checkpoint(service):
    """Of as many values as fit into a small file, and of one long text."""
    wanted = {
        "values": b'{"version":0,"sizeInBytes":[' + b"[]," * (8 * MIB // 3) + b"[]]}",
        "text": b'{"version":0,"x":"' + b"x" * (62 * MIB) + b'"}',
    }
    urls = []
    for kind, content in wanted.items():
        url, log = made(service, f"main.other.points_{kind}", catalog_managed=False)
        (log / "_last_checkpoint").write_bytes(content)
        urls.append(f"{url}/upkeep")
    turns = itertools.cycle(urls)

    def attack(_: Service) -> int:
        return service.client.get(next(turns)).status_code

    with attacked(service, attack, at_once=16) as measured:
        measured.check(grown_mib=128)
    assert set(measured.answers) <= {200, 429, 503}

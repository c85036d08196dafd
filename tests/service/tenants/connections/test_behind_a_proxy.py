"""Whoever comes through the same proxy as a flood goes on, and the proxy keeps its connections."""

from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.service.tenants.rig import Service, attacked
from tests.service.tenants.test_refused import CONNECTIONS, flood

MOST_CONNECTIONS = 480
"""Of which a quarter may wait to be refused: fewer than flood. Those of the round before may still
be there."""
GROWN_MIB = 80
UNKNOWN = f"tdg_{7:012x}_{'0' * 64}"
FLOODS = {
    "unknown": (f"Authorization: Bearer {UNKNOWN}", {401}),
    "none": ("Accept: */*", {401, 429}),
}


@pytest.fixture(scope="module")
def limits() -> dict[str, Any]:
    return {
        "auth": "tokens",
        "max_connections": MOST_CONNECTIONS,
        "trusted_proxies": ("127.0.0.1",),
    }


@pytest.mark.parametrize("what", FLOODS)
def test_tokens_that_nobody_has(service, elsewhere, what):
    """The flood tells of a connection that ends."""
    header, told = FLOODS[what]
    url = urlsplit(service.api)
    head = f"GET {url.path}/tables HTTP/1.1\r\nHost: {url.netloc}\r\n"
    asked = f"{head}X-Forwarded-For: 203.0.113.9\r\n{header}\r\n\r\n".encode()

    def attack(_: Service) -> Counter[int]:
        return elsewhere.submit(flood, (url.hostname, url.port), asked, CONNECTIONS).result()

    with attacked(service, attack) as measured:
        measured.check(grown_mib=GROWN_MIB)
    assert {answered for answers in measured.answers for answered in answers} == told

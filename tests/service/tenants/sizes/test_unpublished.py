"""Large versions that wait for publishing, asked for by who takes their bytes slowly."""

import os
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.builders.flights import add, proposal
from tests.service.tenants.rig import MIB, Service, attacked
from tests.service.tenants.writer import PATIENCE_S

LENGTH = 40 * MIB
"""Of hex, which takes half of it in the index."""
AT_ONCE = 16
TAKEN_FOR_S = 1.0


def test_those_who_take_them_slowly_hold_none_of_it(service: Service):
    url = service.create("main.other.unpublished")
    location = urlsplit(service.client.get(url).json()["location"])
    log = Path(unquote(location.path)) / "_delta_log"
    until = time.monotonic() + PATIENCE_S
    while not (log / f"{0:020}.json").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    # Whoever has a table has it quarantined: its version 1 is another one's in the log already.
    (log / f"{1:020}.json").write_text("{}\n")
    adds = (add(f"month=5/{n}", tags={"a": os.urandom(MIB).hex()}) for n in range(20))
    landed = service.client.post(f"{url}/commits", json=proposal(*adds))
    assert landed.status_code == 201, landed.text

    def attack(_: Service) -> tuple[int, int]:
        with service.client.stream("GET", f"{url}/commits/1") as answer:
            taken = len(next(answer.iter_raw()))
            time.sleep(TAKEN_FOR_S)
            return answer.status_code, taken

    with attacked(service, attack, at_once=AT_ONCE) as measured:
        measured.check(grown_mib=128)
    assert {status for status, _ in measured.answers} == {200}
    assert min(taken for _, taken in measured.answers) > 0
    head = service.client.get(url).json()
    assert (head["state"], head["published_version"]) == ("quarantined", 0)
    content = service.client.get(f"{url}/commits/1").content
    assert len(content) > LENGTH
    assert content.count(b"\n") == 21

"""kill -9 before and after the steps of forgetting a table: the other instance goes on with
it by itself, and nobody has to ask again."""

import time

import httpx
import psycopg
import pytest

from tests.service.instances import Deed, Instance
from tests.service.process.killed.crashing import Table, new_body
from tidegate_service.core.observe.faults import ForgetStep, Side

PATIENCE_S = 30.0
# Nothing is written between the end of a step and the beginning of the next.
POINTS = [(ForgetStep.KEEP, Side.BEFORE), *((step, Side.AFTER) for step in ForgetStep)]


def forget(table: Table, instance: Instance) -> httpx.Response | None:
    try:
        return table.pair.client.delete(f"{instance.api}/tables/{table.name}")
    except httpx.TransportError:
        return None


def is_gone(table: Table, instance: Instance) -> bool:
    return table.pair.client.get(f"{instance.api}/tables/{table.name}").status_code == 404


def end_claims(table: Table) -> int:
    """As a minute does after an instance has died."""
    with psycopg.connect(table.pair.database_url) as connection:
        return connection.execute(
            "UPDATE forgettings SET claimed_until = clock_timestamp() - interval '1 second'"
        ).rowcount


def wait_until_gone(table: Table, instance: Instance) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_gone(table, instance):
        assert time.monotonic() < until, "nobody goes on with it"
        time.sleep(0.1)


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "managed"])
@pytest.mark.parametrize(
    ("step", "side"),
    [pytest.param(step, side, id=f"{side.value}-{step.value}") for step, side in POINTS],
)
def test_the_other_instance_goes_on(two, step, side, catalog_managed):
    table = two.create(catalog_managed=catalog_managed)
    for _ in range(3):
        assert table.propose(two.victim, new_body()).status_code == 201
    log = table.folder / "_delta_log"
    two.victim.arm(step, side, Deed.KILL)
    assert forget(table, two.victim) is None
    assert two.victim.ended() == -9
    try:
        if (step, side) == (ForgetStep.KEEP, Side.BEFORE):
            # Nobody knows of it, and the table is as it was.
            assert end_claims(table) == 0
            assert not is_gone(table, two.survivor)
            assert table.propose(two.survivor, new_body()).status_code == 201
            return
        if (step, side) == (ForgetStep.DROP, Side.AFTER):
            assert is_gone(table, two.survivor)
            assert end_claims(table) == 0
            return
        assert not is_gone(table, two.survivor)
        assert end_claims(table) == 1
        wait_until_gone(table, two.survivor)
        assert end_claims(table) == 0
        assert sorted(int(file.stem) for file in log.glob("*.json")) == [0, 1, 2, 3]
    finally:
        two.restart()

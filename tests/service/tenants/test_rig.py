"""The rig tells of a writer that is stopped."""

import os
import signal
import time

import pytest

from tests.service.tenants.rig import TRIES, attacked


@pytest.mark.at_scale
def test_of_a_service_that_stands_still_again_and_again(service):
    def attack(_):
        os.kill(service.instance.pid, signal.SIGSTOP)
        try:
            time.sleep(0.7)
        finally:
            os.kill(service.instance.pid, signal.SIGCONT)
        time.sleep(0.1)

    with attacked(service, attack) as measured, pytest.raises(AssertionError) as told:
        measured.check(grown_mib=100)
    assert str(told.value).count("p99 of others") == TRIES


def test_of_one_that_grows(service):
    table = service.create("main.other.grows")
    body = b" " * 60 * 1024 * 1024

    def attack(_):
        return service.client.post(
            f"{table}/commits", content=body, headers={"Content-Type": "application/json"}
        ).status_code

    with attacked(service, attack) as measured, pytest.raises(AssertionError, match="grew by"):
        measured.check(grown_mib=1)

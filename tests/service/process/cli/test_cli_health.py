"""`tidegate health`: what a container's health check runs."""

import pytest

from tests.service.api.http.test_api_unavailable import closed
from tests.service.process.cli.command_line import invoke
from tidegate_service.cli.options import own_url
from tidegate_service.settings import Settings


def test_it_asks_where_its_settings_say(server):
    port = server.rpartition(":")[2]
    done = invoke("health", TIDEGATE_HOST="127.0.0.1", TIDEGATE_PORT=port)
    assert (done.exit_code, done.stdout) == (0, f"{server} is ready\n")


def test_or_where_its_callers_variable_says(server):
    done = invoke("health", TIDEGATE_URL=server, TIDEGATE_PORT="9")
    assert (done.exit_code, done.stdout) == (0, f"{server} is ready\n")


def test_one_without_its_index_is_not(server, postgres_server, database_url):
    name = database_url.rpartition("/")[2].partition("?")[0]
    with closed(postgres_server.url, name):
        done = invoke("health", "--url", server)
    assert done.exit_code == 1
    assert "index-unavailable" in done.stderr


def test_nor_is_one_that_nobody_runs():
    done = invoke("health", "--url", "http://127.0.0.1:9")
    assert done.exit_code == 1
    assert "does not answer" in done.stderr


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8720"),
        ("0.0.0.0", "http://127.0.0.1:8720"),
        ("::", "http://[::1]:8720"),
        ("::1", "http://[::1]:8720"),
        ("lake.internal", "http://lake.internal:8720"),
    ],
)
def test_a_service_is_asked_on_its_own_machine(host, expected):
    assert own_url(Settings(auth="tokens", host=host)) == expected

"""Metadata domains over HTTP."""

import uuid

import pytest

from tests.builders.flights import proposal, table_body


@pytest.fixture
def table(shared_api):
    """A table that takes domains."""
    body = table_body(
        f"main.air.{uuid.uuid4().hex}", properties={"delta.feature.domainMetadata": "supported"}
    )
    shared_api.post("/tables", json=body).raise_for_status()
    return body["name"]


def domain(name, configuration, *, removed=False):
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


@pytest.mark.parametrize(("name", "path"), [("mine", "mine"), ("a/b é", "a/b%20%C3%A9")])
def test_the_latest_configuration_is_told_until_it_is_removed(shared_api, table, name, path):
    def told():
        return shared_api.get(f"/tables/{table}/domains/{path}").json()

    def commit(action):
        head = shared_api.get(f"/tables/{table}").json()["latest_version"]
        body = proposal(action, read_version=head)
        answer = shared_api.post(f"/tables/{table}/commits", json=body)
        assert answer.status_code == 201, answer.text

    assert told() == {"domain": name, "configuration": None}
    for text in ('{"n":1}', '{"n":2}'):
        commit(domain(name, text))
        assert told() == {"domain": name, "configuration": text}
    commit(domain(name, "{}", removed=True))
    assert told() == {"domain": name, "configuration": None}


@pytest.mark.parametrize("path", ["%00", "x" * 1025])
def test_names_that_none_can_have(shared_api, table, path):
    answer = shared_api.get(f"/tables/{table}/domains/{path}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")

"""Conflict vectors over HTTP, against the real service, on both kinds of table."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests import vectors
from tests.vector_facts import Log
from tests.vectors import Kind, Landed, Lost, Outcome, Refused, TableSpec, Vector
from tidegate_protocol.log.codec import encode
from tidegate_protocol.proposal.transaction import Proposal

ALL = vectors.load()
_names = itertools.count()


class HttpDriver:
    """A table of its own on a running service."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._name = f"main.vectors.t{next(_names)}"
        self._url = f"/tables/{self._name}"

    def create(self, spec: TableSpec) -> None:
        outcome = self._create(
            {
                "schema": spec.schema,
                "partition_columns": spec.partition_columns,
                "properties": spec.properties,
                "protocol": spec.protocol,
                "catalog_managed": spec.catalog_managed,
            }
        )
        assert outcome == Landed(version=0), outcome

    def create_by(self, proposal: Proposal) -> Outcome:
        """The request has a place of its own for what the first commit's metaData and protocol
        say; the rest are its actions."""
        bodies: dict[str, Any] = {}
        others = []
        for line in _lines(proposal):
            ((kind, body),) = line.items()
            if kind in ("metaData", "protocol"):
                bodies[kind] = body
            else:
                others.append(line)
        metadata = bodies["metaData"]
        return self._create(
            {
                "schema": metadata["schemaString"],
                "partition_columns": metadata["partitionColumns"],
                "properties": metadata["configuration"],
                "protocol": bodies.get("protocol"),
                "actions": others,
            }
        )

    def propose(self, proposal: Proposal) -> Outcome:
        reads = proposal.reads
        body = {
            "transaction_id": proposal.transaction_id,
            "read_version": proposal.read_version,
            "reads": {
                "whole_table": reads.whole_table,
                "predicates": list(reads.predicates),
                "files": sorted(reads.files),
                "app_ids": sorted(reads.app_ids),
            },
            "actions": _lines(proposal),
            "operation": proposal.operation,
        }
        return _outcome(self._http.post(f"{self._url}/commits", json=body))

    def log(self) -> Log:
        head = self._http.get(self._url)
        if head.status_code == 404:
            return []
        return [self._version(v) for v in range(head.json()["latest_version"] + 1)]

    def _version(self, version: int) -> list[Mapping[str, Any]]:
        answer = self._http.get(f"{self._url}/commits/{version}")
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.content.splitlines()]

    def _create(self, body: Mapping[str, Any]) -> Outcome:
        given = {key: value for key, value in body.items() if value is not None}
        answer = self._http.post("/tables", json={"name": self._name, **given})
        if answer.status_code == 201:
            return Landed(version=answer.json()["latest_version"])
        return _outcome(answer)


def _lines(proposal: Proposal) -> list[Mapping[str, Any]]:
    return [json.loads(encode(action)) for action in proposal.actions]


def _outcome(answer: httpx.Response) -> Outcome:
    body = answer.json()
    match answer.status_code:
        case 200 | 201:
            return Landed(version=body["version"])
        case 409:
            assert not body["retryable"]
            return Lost(
                error_class=body["error_class"], partition=body["conflict"].get("partition")
            )
        case 422:
            return Refused(code=body["code"])
    raise AssertionError(f"{answer.status_code}: {body}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All cases run against the ledger, too. Every third has both kinds of table."""
    every = {"third": 3, "all": 1}[metafunc.config.getoption("--http-vectors")]
    cases = list(itertools.product(ALL, Kind))[::every]
    ids = [f"{vector.theme}/{vector.name}-{kind}" for vector, kind in cases]
    metafunc.parametrize(("vector", "kind"), cases, ids=ids)


@pytest.mark.skipif(not ALL, reason=vectors.ABSENT)
def test_vector(vector: Vector, kind: Kind, shared_api: httpx.Client):
    reason = vectors.skip_reason(vector, kind)
    if reason is not None:
        pytest.skip(reason)
    assert vectors.run(vector, kind, HttpDriver(shared_api)) == []

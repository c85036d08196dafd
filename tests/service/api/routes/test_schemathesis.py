"""Requests made out of the OpenAPI document: whatever they hold, the answer is a documented one.

schemathesis takes each operation, writes requests that follow the document and requests that
break it, and holds every answer against the document: no 5xx, no status, media type, header or
body that is not described, nothing taken that the document forbids. Each operation is asked of
tables, versions and transactions that exist, and of whatever names the document allows.
"""

import copy
import uuid
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tests.builders.flights import add, proposal, table_body
from tests.service.serving import OF_NO_PAGE, document

OPERATIONS = [
    (method.upper(), path) for path, methods in document()["paths"].items() for method in methods
]
TRANSACTION = "known-transaction"
CONFIG = schemathesis.Config.from_dict(
    {
        "checks": {
            "negative_data_rejection": {
                # Too large is a refusal like others.
                "expected-statuses": ["400", "404", "405", "406", "409", "410", "413", "415", "422"]
            }
        }
    }
)
JUDGED_BY_TABLE = frozenset({"verify_table", "rebuild_table", "uc_delete_schema"})
"""Operations without a body that can be refused for what the table or schema is, as those with one
can."""
EVERYWHERE = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="session")
def requests_each(pytestconfig: pytest.Config) -> int:
    """Of each operation and mode."""
    found: int = pytestconfig.getoption("--requests")
    return found


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        # Without it, a POST without a body is taken for a page's of another origin.
        session.headers.update(OF_NO_PAGE)
        yield session


@pytest.fixture
def narrowed(shared_server: str) -> dict[str, Any]:
    """The document, its path parameters narrowed to what exists, where that is not all."""
    tables = [new_table(shared_server, catalog_managed=managed) for managed in (False, True)]
    only: dict[str, list[object]] = {"table": tables, "version": [0, 1, 2]}
    too: dict[str, list[object]] = {"transaction_id": [TRANSACTION], "app_id": ["stream-1"]}
    found = copy.deepcopy(document())
    for methods in found["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                name, schema = parameter["name"], parameter["schema"]
                if name in only:
                    parameter["schema"] = {"enum": only[name]}
                elif name in too:
                    parameter["schema"] = {"anyOf": [{"enum": too[name]}, schema]}
    return found


def new_table(url: str, *, catalog_managed: bool) -> str:
    """A table of two versions."""
    name = f"main.fuzz.{uuid.uuid4().hex}"
    body = table_body(name, catalog_managed=catalog_managed)
    with httpx.Client(base_url=f"{url}/api/v1") as client:
        assert client.post("/tables", json=body).status_code == 201
        txn = {"txn": {"appId": "stream-1", "version": 1}}
        commit = proposal(add(), txn, transaction_id=TRANSACTION)
        assert client.post(f"/tables/{name}/commits", json=commit).status_code == 201
    return name


def operation_of(described: dict[str, Any], method: str, path: str) -> APIOperation:
    schema = schemathesis.openapi.from_dict(described, config=CONFIG)
    found: APIOperation = schema[path][method]
    return found


def ask(operation: APIOperation, url: str, session: requests.Session, requests_each: int) -> None:
    """Both kinds of requests, every check. Raises the failures, each with a curl command."""
    described = operation.definition.raw
    # What follows the schema of a body can still be no table or transaction: a 422 of its own.
    judged = described.get("requestBody") or described["operationId"] in JUDGED_BY_TABLE
    excluded = [positive_data_acceptance] if judged else []
    # What schemathesis takes for a violation of both halves, such as false, is text in a path.
    in_path = [found for found in described.get("parameters", []) if found["in"] == "path"]
    if any("anyOf" in found["schema"] for found in in_path):
        excluded.append(negative_data_rejection)
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

        @settings(EVERYWHERE, max_examples=requests_each)
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Case) -> None:
            case.call_and_validate(base_url=url, session=session, excluded_checks=excluded)

        # There is no wrong way to ask an operation that takes nothing.
        with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
            check()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
class TestAnswers:
    def test_for_any_name_are_documented(self, method, path, shared_server, session, requests_each):
        ask(operation_of(document(), method, path), shared_server, session, requests_each)

    def test_for_what_exists_are_documented(  # noqa: PLR0917
        self, method, path, shared_server, session, narrowed, requests_each
    ):
        ask(operation_of(narrowed, method, path), shared_server, session, requests_each)

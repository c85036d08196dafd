"""The OpenAPI document says what the service does, and the service does what it says."""

import json
import re
import threading
from typing import Any

import httpx
import msgspec
from deltalake import DeltaTable
from starlette.responses import JSONResponse

from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tests.service.serving import DocumentedClient, answer_type, document
from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEMS, Code
from tidegate_protocol.log.actions import KINDS
from tidegate_service.api import application as application_module
from tidegate_service.api import openapi
from tidegate_service.api.describe import codes, examples
from tidegate_service.app import application

UNITY = "/api/2.1/unity-catalog"
SCHEMA = f"{UNITY}/delta/v1/catalogs/{{catalog}}/schemas/{{schema}}"
EXPECTED = {
    ("POST", "/api/v1/tables"): "create_table",
    ("POST", "/api/v1/tables/register"): "register_table",
    ("GET", "/api/v1/tables"): "list_tables",
    ("GET", "/api/v1/tables/{table}"): "get_table",
    ("GET", "/api/v1/tables/{table}/upkeep"): "get_upkeep",
    ("GET", "/api/v1/tables/default-location"): "get_default_location",
    ("GET", "/api/v1/tables/{table}/domains/{domain}"): "get_domain",
    ("DELETE", "/api/v1/tables/{table}"): "forget_table",
    ("POST", "/api/v1/tables/{table}/commits"): "propose",
    ("POST", "/api/v1/tables/{table}/conflict-check"): "check_conflicts",
    ("GET", "/api/v1/tables/{table}/commits"): "list_commits",
    ("GET", "/api/v1/tables/{table}/commits/{version}"): "get_commit",
    ("GET", "/api/v1/tables/{table}/transactions/{transaction_id}"): "get_transaction",
    ("POST", "/api/v1/tables/{table}/transactions/{transaction_id}/abort"): "abort_transaction",
    ("POST", "/api/v1/tables/{table}/scan"): "scan",
    ("GET", "/api/v1/tables/{table}/app-transactions/{app_id}"): "get_app_transaction",
    ("GET", "/api/v1/tables/{table}/verify"): "verify_table",
    ("POST", "/api/v1/tables/{table}/rebuild"): "rebuild_table",
    ("POST", "/api/v1/tables/{table}/release"): "release_table",
    ("POST", "/api/v1/tables/{table}/checkpoint"): "checkpoint_table",
    ("POST", "/api/v1/tables/{table}/manifest"): "generate_manifest",
    ("POST", "/api/v1/tables/{table}/vacuum"): "vacuum_table",
    ("GET", "/api/v1/forgotten-tables"): "list_forgotten_tables",
    ("DELETE", "/api/v1/forgotten-tables/{table_id}"): "delete_forgotten_table",
    ("GET", f"{UNITY}/schemas"): "uc_list_schemas",
    ("POST", f"{UNITY}/schemas"): "uc_create_schema",
    ("GET", f"{UNITY}/schemas/{{full_name}}"): "uc_get_schema",
    ("DELETE", f"{UNITY}/schemas/{{full_name}}"): "uc_delete_schema",
    ("GET", f"{UNITY}/tables"): "uc_list_tables",
    ("GET", f"{UNITY}/tables/{{table}}"): "uc_get_table",
    ("DELETE", f"{UNITY}/tables/{{table}}"): "uc_delete_table",
    ("GET", f"{UNITY}/delta/v1/config"): "uc_delta_config",
    ("POST", f"{SCHEMA}/staging-tables"): "uc_stage_table",
    ("POST", f"{SCHEMA}/tables"): "uc_create_table",
    ("GET", f"{SCHEMA}/tables/{{table}}"): "uc_load_table",
    ("POST", f"{SCHEMA}/tables/{{table}}"): "uc_update_table",
    ("POST", f"{SCHEMA}/tables/{{table}}/metrics"): "uc_report_metrics",
    ("GET", f"{SCHEMA}/tables/{{table}}/credentials"): "uc_table_credentials",
    ("GET", f"{UNITY}/delta/v1/staging-tables/{{table_id}}/credentials"): "uc_staging_credentials",
    ("GET", "/healthz"): "healthz",
    ("GET", "/readyz"): "readyz",
    ("GET", "/metrics"): "metrics",
}
WITH_BODY = {
    "create_table",
    "register_table",
    "propose",
    "check_conflicts",
    "scan",
    "checkpoint_table",
    "vacuum_table",
    "uc_create_schema",
    "uc_stage_table",
    "uc_create_table",
    "uc_update_table",
}

OWN = "/api/v1/"
OF_UNITY_CATALOG = {name for (_, path), name in EXPECTED.items() if path.startswith(UNITY)}


def operations() -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: operation
        for methods in document()["paths"].values()
        for operation in methods.values()
    }


def documented_codes(operation: dict[str, Any]) -> set[str]:
    return {
        code
        for answer in operation["responses"].values()
        for code in answer.get("content", {}).get(PROBLEM_MEDIA_TYPE, {}).get("examples", {})
    }


def nodes(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(node for child in value.values() for node in nodes(child))]
    if isinstance(value, list):
        return [node for child in value for node in nodes(child)]
    return []


class TestDocument:
    def test_exactly_the_calls_of_the_contract(self):
        found = {
            (method.upper(), path): operation["operationId"]
            for path, methods in document()["paths"].items()
            for method, operation in methods.items()
        }
        assert found == EXPECTED

    def test_the_running_service_serves_it(self, shared_server):
        with DocumentedClient(base_url=shared_server) as client:
            assert client.get("/openapi.json").json() == document()

    def test_it_is_made_once_and_in_a_thread(self, start_service, monkeypatch):
        made, written = [], []
        render = JSONResponse.render

        def described(app):
            made.append(threading.current_thread())
            return openapi.describe(app)

        def rendered(response, content):
            written.extend(key for key in content if key == "openapi")
            return render(response, content)

        monkeypatch.setattr(application_module, "describe", described)
        monkeypatch.setattr(JSONResponse, "render", rendered)
        service = start_service()
        # Which methods a path has is told by the document.
        assert httpx.put(f"{service.url}/api/v1/tables").headers["allow"] == "GET, POST"
        answers = [httpx.get(f"{service.url}/openapi.json") for _ in range(3)]
        assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
        assert [answer.json() for answer in answers] == [document()] * 3
        assert (len(made), len(written)) == (1, 1)
        assert made[0] is not service.thread

    def test_it_is_openapi_3_1_of_this_service(self):
        found = document()
        assert found["openapi"].startswith("3.1")
        assert found["info"]["title"] == "Tidegate"
        assert found["info"]["version"] == application().version
        assert "contact" not in found["info"]
        used = {tag for operation in operations().values() for tag in operation["tags"]}
        assert used == {tag["name"] for tag in found["tags"]}

    def test_every_operation_says_what_it_does(self):
        for operation in operations().values():
            assert operation["summary"]
            assert operation["description"]
            for parameter in operation.get("parameters", []):
                assert parameter["description"], parameter["name"]

    def test_every_reference_leads_somewhere(self):
        schemas = document()["components"]["schemas"]
        for node in nodes(document()):
            if "$ref" in node and isinstance(node["$ref"], str):
                assert node["$ref"].removeprefix("#/components/schemas/") in schemas

    def test_every_schema_is_used(self):
        text = json.dumps(document())
        for name in document()["components"]["schemas"]:
            mentioned = f'"#/components/schemas/{name}"' in text or f"`{name}`" in text
            assert mentioned, name

    def test_nothing_of_the_framework_shines_through(self):
        text = json.dumps(document())
        for name in ("HTTPValidationError", "ValidationError", "Input should be", " raw"):
            assert f'"{name}' not in text


def _flights() -> str:
    return f"/tables/{examples.CREATE_TABLE['partitioned']['value']['name']}"


def _proposals() -> dict[str, str]:
    found = {name: json.dumps(example["value"]) for name, example in examples.PROPOSALS.items()}
    return {**found, "ndjson": examples.PROPOSAL_NDJSON}


class TestBodies:
    def test_each_is_described_and_has_examples(self):
        for name, operation in operations().items():
            assert ("requestBody" in operation) == (name in WITH_BODY)
            for content in operation.get("requestBody", {}).get("content", {}).values():
                assert content["schema"]
                assert content["examples"]

    def test_proposals_come_in_two_forms(self):
        for name in ("propose", "check_conflicts"):
            content = operations()[name]["requestBody"]["content"]
            assert list(content) == ["application/json", "application/x-ndjson"]

    def test_every_field_of_a_body_that_is_no_matter_of_course_is_explained(self):
        schemas = document()["components"]["schemas"]
        fields = schemas["ProposalBody"]["properties"]
        assert {"operation", "actions"} == set(schemas["ProposalBody"]["required"])
        for name in ("transaction_id", "read_version", "operation", "actions", "isolation_level"):
            assert fields[name]["description"]
        assert schemas["ProposalBody"]["additionalProperties"] is False
        assert schemas["Action"]["properties"].keys() == KINDS.keys()

    def test_the_examples_are_taken_by_the_service(self, api):
        for example in examples.CREATE_TABLE.values():
            answer = api.post("/tables", json=example["value"])
            assert answer.status_code == 201, answer.text
        for name, proposal in _proposals().items():
            body = re.sub(r"<the file that (\w+) (\w+)>", r"\1-\2", proposal)
            kind = NDJSON_TYPE if name == "ndjson" else JSON_TYPE
            for call, status in (("conflict-check", 200), ("commits", 201)):
                answer = api.post(f"{_flights()}/{call}", content=body, headers=kind)
                assert answer.status_code == status, answer.text
        for example in examples.SCANS.values():
            answer = api.post(f"{_flights()}/scan", json=example["value"])
            assert answer.status_code == 200, answer.text

    def test_sent_as_they_are_none_names_a_file_that_is_not_there(self, api):
        made = api.post("/tables", json=examples.CREATE_TABLE["partitioned"]["value"]).json()
        landed = []
        # So that there is a version 2 to have read.
        api.post(f"{_flights()}/commits", json=examples.PROPOSALS["progress"]["value"])
        for name, proposal in _proposals().items():
            kind = NDJSON_TYPE if name == "ndjson" else JSON_TYPE
            answer = api.post(f"{_flights()}/commits", content=proposal, headers=kind)
            if answer.status_code == 201:
                landed.append(name)
            else:
                assert answer.json()["code"] == "invalid-path", answer.text
                assert "percent-encoded" in answer.json()["detail"]
        assert landed == ["progress"]
        assert DeltaTable(made["location"]).to_pyarrow_table().num_rows == 0


class TestAnswers:
    def test_each_of_the_api_has_an_example_of_its_type(self):
        for (_, path), name in EXPECTED.items():
            for answer in operations()[name]["responses"].values():
                content = answer.get("content", {}).get("application/json")
                if content is None or not path.startswith(OWN):
                    continue
                kind = answer_type(content["schema"]["$ref"].rpartition("/")[2])
                example = msgspec.json.encode(content["example"])
                again = msgspec.json.encode(msgspec.json.decode(example, type=kind))
                assert json.loads(again) == content["example"]


class TestProblems:
    def test_each_stands_under_its_status(self):
        for operation in operations().values():
            for status, answer in operation["responses"].items():
                found = answer.get("content", {}).get(PROBLEM_MEDIA_TYPE, {}).get("examples", {})
                assert answer["description"]
                for code, example in found.items():
                    assert str(PROBLEMS[Code(code)].status) == status
                    assert example["value"]["code"] == code
                    assert f"`{code}`" in answer["description"]
                if status in ("429", "503"):
                    assert "Retry-After" in answer["headers"]

    def test_every_call_of_the_api_can_meet_these(self):
        usual = {*codes.ALWAYS, Code.INDEX_UNAVAILABLE}
        for (_, path), name in EXPECTED.items():
            if path.startswith(OWN):
                assert usual <= documented_codes(operations()[name]), name

    def test_calls_with_a_body_name_the_media_type(self):
        for name in WITH_BODY - OF_UNITY_CATALOG:
            assert Code.UNSUPPORTED_MEDIA_TYPE in documented_codes(operations()[name])

    def test_calls_on_a_table_can_miss_it(self):
        for (_, path), name in EXPECTED.items():
            if name in OF_UNITY_CATALOG:
                continue
            named = "{table}" in path or "{table_id}" in path
            assert (Code.TABLE_NOT_FOUND in documented_codes(operations()[name])) == named

    def test_together_they_are_all_codes(self):
        found = {
            code for operation in operations().values() for code in documented_codes(operation)
        }
        elsewhere = {Code.ROUTE_NOT_FOUND, Code.METHOD_NOT_ALLOWED, Code.MALFORMED_HTTP}
        elsewhere |= {Code.VERSION_TAKEN, Code.REQUIREMENT_FAILED}
        assert found | elsewhere == set(Code)

    def test_every_code_is_described_once_in_code(self):
        assert set(PROBLEMS) == set(Code)


class TestUnityCatalog:
    """Its answers are another project's; the document says what a status means."""

    def test_every_call_can_meet_these(self):
        for name in OF_UNITY_CATALOG:
            assert {"400", "401", "429", "500", "503"} <= set(operations()[name]["responses"])

    def test_calls_on_a_table_can_miss_it(self):
        for (_, path), name in EXPECTED.items():
            if name in OF_UNITY_CATALOG:
                assert ("404" in operations()[name]["responses"]) == ("{table}" in path)

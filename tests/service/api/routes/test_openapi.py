"""The document has exactly the calls of the contract, and the service takes its examples."""

import json
import re

from deltalake import DeltaTable

from tests.builders.flights import add
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tests.service.serving import DocumentedClient, document
from tidegate_service.api.describe import examples

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
    ("GET", "/api/v1/tables/{table}/verify/files"): "verify_files",
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


def _flights() -> str:
    return f"/tables/{examples.CREATE_TABLE['partitioned']['value']['name']}"


def _proposals() -> dict[str, str]:
    found = {name: json.dumps(example["value"]) for name, example in examples.PROPOSALS.items()}
    return {**found, "ndjson": examples.PROPOSAL_NDJSON}


class TestBodies:
    def test_the_examples_are_taken_by_the_service(self, api):
        for example in examples.CREATE_TABLE.values():
            answer = api.post("/tables", json=example["value"])
            assert answer.status_code == 201, answer.text
        for name, proposal in _proposals().items():
            body = re.sub(r"<the file that (\w+) (\w+)>", r"\1-\2", proposal)
            if name == "append":
                # It adds what the next one replaces, too.
                replaced = json.dumps(add("month=5/it-replaces.parquet"))
                body = body.replace('"actions": [', f'"actions": [{replaced}, ')
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

"""Transaction ids and application transactions over HTTP."""

import uuid

import pytest

from tests.builders.flights import add, proposal


def txn(app_id: str, version: int, **fields: int) -> dict[str, object]:
    return {"txn": {"appId": app_id, "version": version, **fields}}


class TestTransactions:
    def test_committed_with_its_version(self, shared_api, flights):
        body = proposal(add(), transaction_id="t-1")
        first = shared_api.post(f"/tables/{flights}/commits", json=body).json()
        found = shared_api.get(f"/tables/{flights}/transactions/t-1").json()
        assert found == {
            "transaction_id": "t-1",
            "state": "committed",
            "version": 1,
            "commit": {**first, "replayed": True, "check_ms": None, "totals": None},
        }
        again = shared_api.post(f"/tables/{flights}/commits", json=body).json()
        assert found["commit"] == again

    def test_aborted_it_never_lands(self, shared_api, flights):
        url = f"/tables/{flights}/transactions/t-1"
        aborted = {"transaction_id": "t-1", "state": "aborted", "version": None, "commit": None}
        for _ in range(2):
            answer = shared_api.post(f"{url}/abort")
            assert (answer.status_code, answer.json()) == (200, aborted)
        assert shared_api.get(url).json() == aborted

        for call in ("commits", "conflict-check"):
            answer = shared_api.post(
                f"/tables/{flights}/{call}", json=proposal(add(), transaction_id="t-1")
            )
            assert (answer.status_code, answer.json()["code"]) == (410, "transaction-aborted")
            assert answer.json()["hint"]
        # The one version is empty: it keeps a late attempt out (test_aborts.py).
        head = shared_api.get(f"/tables/{flights}").json()
        assert (head["latest_version"], head["num_files"]) == (1, 0)

    def test_what_landed_is_not_aborted(self, shared_api, flights):
        shared_api.post(f"/tables/{flights}/commits", json=proposal(add(), transaction_id="t-1"))
        answer = shared_api.post(f"/tables/{flights}/transactions/t-1/abort")
        assert (answer.status_code, answer.json()["code"]) == (409, "transaction-committed")
        assert answer.json()["version"] == 1

    def test_what_nobody_proposed_is_not_found(self, shared_api, flights):
        answer = shared_api.get(f"/tables/{flights}/transactions/{uuid.uuid4()}")
        assert (answer.status_code, answer.json()["code"]) == (404, "transaction-not-found")

    @pytest.mark.parametrize("call", ["", "/abort"])
    @pytest.mark.parametrize("given", ["a%20b", "a%00", "%C3%A9", "a%0A", "x" * 129, "a%25"])
    def test_ids_that_none_can_have(self, shared_api, flights, call, given):
        url = f"/tables/{flights}/transactions/{given}{call}"
        answer = shared_api.request("POST" if call else "GET", url)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert answer.json()["errors"][0]["where"] == "path/transaction_id"

    def test_of_a_table_that_is_not_there(self, shared_api):
        for method, call in (("GET", ""), ("POST", "/abort")):
            answer = shared_api.request(method, f"/tables/a.b.c/transactions/t-1{call}")
            assert (answer.status_code, answer.json()["code"]) == (404, "table-not-found")


class TestAppTransactions:
    def test_unknown_is_version_minus_1(self, shared_api, flights):
        found = shared_api.get(f"/tables/{flights}/app-transactions/stream-1").json()
        assert found == {"app_id": "stream-1", "version": -1, "last_updated": None}

    @pytest.mark.parametrize(
        ("app_id", "path"),
        [("stream-1", "stream-1"), ("a/b/é ?", "a/b/%C3%A9%20%3F"), ("%2F", "%252F")],
    )
    def test_the_latest_is_told(self, shared_api, flights, app_id, path):
        for version in (3, 9):
            body = proposal(
                add(f"month=5/{version}"), txn(app_id, version, lastUpdated=version * 10)
            )
            assert shared_api.post(f"/tables/{flights}/commits", json=body).status_code == 201
        found = shared_api.get(f"/tables/{flights}/app-transactions/{path}").json()
        assert found == {"app_id": app_id, "version": 9, "last_updated": 90}

    @pytest.mark.parametrize("path", ["%00", "a%1Bb", "x" * 1025])
    def test_ids_that_none_can_have(self, shared_api, flights, path):
        answer = shared_api.get(f"/tables/{flights}/app-transactions/{path}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")

    def test_of_a_table_that_is_not_there(self, shared_api):
        assert shared_api.get("/tables/a.b.c/app-transactions/x").status_code == 404

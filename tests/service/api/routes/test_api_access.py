"""Who may call what, over HTTP: every route, every role, and what those outside can learn."""

from collections.abc import Iterator

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.servers.postgres import cloned
from tests.service.api.http.connections.requests_by_hand import exchange
from tests.service.catalog_managed.guarded import Guarded, revoke_token
from tests.service.serving import document, running
from tidegate_service.api.http.request.faces import UNITY_PREFIX
from tidegate_service.core.access.tokens import CACHE_S
from tidegate_service.settings import Settings

TABLE = "main.air.flights"
NONE = "public"
POLICIES = {
    "create_table": "writer",
    "register_table": "admin",
    "list_tables": "reader",
    "get_table": "reader",
    "get_default_location": "writer",
    "get_upkeep": "reader",
    "get_domain": "reader",
    "forget_table": "admin",
    "propose": "writer",
    "check_conflicts": "writer",
    "list_commits": "reader",
    "get_commit": "reader",
    "get_transaction": "reader",
    "abort_transaction": "writer",
    "get_app_transaction": "reader",
    "scan": "reader",
    "verify_table": "reader",
    "verify_files": "reader",
    "rebuild_table": "admin",
    "release_table": "admin",
    "checkpoint_table": "writer",
    "generate_manifest": "writer",
    "vacuum_table": "admin",
    "list_forgotten_tables": "admin",
    "delete_forgotten_table": "admin",
    "metrics": "reader",
    "healthz": NONE,
    "readyz": NONE,
}
LESSER = {"reader": None, "writer": "reader", "admin": "writer"}
BODIES = {
    "create_table": table_body,
    "register_table": lambda name: {"name": name, "location": "file:///nowhere/table"},
    "propose": lambda _: proposal(add()),
    "check_conflicts": lambda _: proposal(add()),
    "scan": lambda _: {},
    "checkpoint_table": lambda _: {},
    "vacuum_table": lambda _: {"dry_run": True},
}


@pytest.fixture(scope="module")
def guarded(postgres_server, migrated_template, tmp_path_factory) -> Iterator[Guarded]:
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url, data_dir=tmp_path_factory.mktemp("guarded"), port=0, auth="tokens"
        )
        with running(settings) as service:
            found = Guarded(service.url, url)
            found.table(TABLE)
            found.table("main.sea.ships")
            found.table("other.air.flights")
            yield found


def operations() -> dict[str, tuple[str, str]]:
    """Those of the service's own API; `test_stock_access.py` has those of Unity Catalog's."""
    return {
        operation["operationId"]: (method.upper(), path)
        for path, methods in document()["paths"].items()
        if not path.startswith(UNITY_PREFIX)
        for method, operation in methods.items()
    }


def call(client: httpx.Client, name: str, *, table: str = TABLE) -> httpx.Response:
    """An operation on a table, with as little as makes it pass the checks of its parameters."""
    method, template = operations()[name]
    path = template.format(
        table=table, version=0, transaction_id="t-1", app_id="a", domain="d", table_id="none"
    )
    body = BODIES[name](table) if name in BODIES else None
    asked = {"name": table} if name == "get_default_location" else None
    return client.request(method, path, json=body, params=asked)


def without_instance(answer: httpx.Response) -> dict[str, object]:
    return {name: value for name, value in answer.json().items() if name != "instance"}


class TestEveryRoute:
    def test_each_is_in_the_table_of_policies(self):
        assert set(operations()) == set(POLICIES)

    @pytest.mark.parametrize("name", POLICIES)
    def test_the_document_says_whether_it_takes_a_token(self, name):
        method, path = operations()[name]
        security = document()["paths"][path][method.lower()]["security"]
        assert security == ([] if POLICIES[name] == NONE else [{"token": []}, {}])
        scheme = document()["components"]["securitySchemes"]["token"]
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")

    @pytest.mark.parametrize("name", POLICIES)
    def test_nobody_gets_in_without_a_token(self, guarded, name):
        with guarded.client(None, root="") as client:
            answer = call(client, name)
        if POLICIES[name] == NONE:
            assert answer.status_code == 200
            return
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == 'Bearer realm="tidegate"'

    @pytest.mark.parametrize("name", [name for name in POLICIES if LESSER.get(POLICIES[name])])
    def test_a_lesser_role_on_the_same_is_told_so(self, guarded, name):
        token = guarded.token(LESSER[POLICIES[name]], TABLE)
        with guarded.client(token, root="") as client:
            answer = call(client, name)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert POLICIES[name] in answer.json()["detail"]

    @pytest.mark.parametrize(
        "name", [name for name, (_, path) in operations().items() if "{table}" in path]
    )
    def test_all_of_another_table_looks_as_if_there_were_none(self, guarded, name):
        # An admin of everything but this.
        token = guarded.token("admin", "other", "main.sea", "main.airport")
        with guarded.client(token, root="") as client:
            forbidden = call(client, name)
            unknown = call(client, name, table="main.air.nothing")
        assert forbidden.status_code == unknown.status_code == 404
        expected = without_instance(unknown)
        expected["detail"] = expected["detail"].replace("main.air.nothing", TABLE)
        assert without_instance(forbidden) == expected
        assert forbidden.headers.keys() == unknown.headers.keys()

    @pytest.mark.parametrize("name", ["create_table", "register_table"])
    def test_what_a_body_names_has_to_be_ones_own(self, guarded, name):
        with guarded.client(guarded.token("admin", "other"), root="") as client:
            taken = call(client, name)
            free = call(client, name, table="main.air.nothing")
        assert taken.status_code == free.status_code == 403
        assert without_instance(taken)["code"] == without_instance(free)["code"] == "forbidden"

    def test_a_role_on_everything_is_needed_for_metrics(self, guarded):
        with guarded.client(guarded.token("admin", "main", "other"), root="") as client:
            assert client.get("/metrics").status_code == 403
        with guarded.client(guarded.token("reader", "*"), root="") as client:
            assert client.get("/metrics").status_code == 200


class TestRights:
    @pytest.mark.parametrize("scope", ["*", "main", "main.air", TABLE])
    def test_a_reader_reads_and_no_more(self, guarded, scope):
        with guarded.client(guarded.token("reader", scope)) as client:
            assert client.get(f"/tables/{TABLE}").status_code == 200
            assert client.get("/tables/MAIN.Air.FLIGHTS").status_code == 200
            assert client.get(f"/tables/{TABLE}/commits").status_code == 200
            assert client.post(f"/tables/{TABLE}/scan", json={}).status_code == 200
            answer = client.post(f"/tables/{TABLE}/commits", json=proposal(add()))
            assert answer.status_code == 403
            assert client.delete(f"/tables/{TABLE}").status_code == 403

    @pytest.mark.parametrize("scope", ["*", "main", "main.air", TABLE])
    def test_a_writer_commits(self, guarded, scope):
        with guarded.client(guarded.token("writer", scope)) as client:
            path = f"month=5/{scope.replace('*', 'all')}.parquet"
            answer = client.post(f"/tables/{TABLE}/commits", json=proposal(add(path)))
            assert answer.status_code == 201
            assert client.delete(f"/tables/{TABLE}").status_code == 403

    def test_a_writer_creates_where_the_warehouse_puts_it(self, guarded):
        with guarded.client(guarded.token("writer", "main.new")) as client:
            assert client.post("/tables", json=table_body("main.new.a")).status_code == 201
            elsewhere = table_body("main.new.b", location="file:///srv/elsewhere")
            assert client.post("/tables", json=elsewhere).status_code == 403
            assert client.post("/tables", json=table_body("main.newer.a")).status_code == 403
            assert client.delete("/tables/main.new.a").status_code == 403
        with guarded.client(guarded.token("admin", "main.new")) as client:
            assert client.post("/tables", json=elsewhere).json()["code"] == "invalid-location"
            assert client.delete("/tables/main.new.a").status_code == 204

    def test_a_table_is_found_by_its_id_with_the_rights_on_its_name(self, guarded):
        with guarded.client(guarded.token("reader", TABLE)) as client:
            table_id = client.get(f"/tables/{TABLE}").json()["id"]
            assert client.get(f"/tables/{table_id}").status_code == 200
            answer = client.post(f"/tables/{table_id}/commits", json=proposal(add()))
            assert answer.status_code == 403
        with guarded.client(guarded.token("admin", "other")) as client:
            forbidden = client.get(f"/tables/{table_id}")
            unknown = client.get(f"/tables/{'0' * 8}-{table_id[9:]}")
            assert forbidden.status_code == unknown.status_code == 404
            assert forbidden.json()["code"] == unknown.json()["code"] == "table-not-found"

    @pytest.mark.parametrize(
        ("scopes", "seen"),
        [
            (["*"], {TABLE, "main.sea.ships", "other.air.flights"}),
            (["main"], {TABLE, "main.sea.ships"}),
            (["main.air"], {TABLE}),
            (["main.sea.ships", "other"], {"main.sea.ships", "other.air.flights"}),
            (["nowhere"], set()),
            (["mai"], set()),
            (["main.sea.ship"], set()),
        ],
    )
    def test_a_list_has_what_one_may_read(self, guarded, scopes, seen):
        with guarded.client(guarded.token("reader", *scopes)) as client:
            first = client.get("/tables", params={"limit": 1}).json()
            names = {table["name"] for table in first["tables"]}
            while first["next_cursor"]:
                first = client.get(
                    "/tables", params={"limit": 1, "cursor": first["next_cursor"]}
                ).json()
                assert len(first["tables"]) == 1, "a page is not thinned out by what is left out"
                names |= {table["name"] for table in first["tables"]}
        assert names == seen


class TestTokens:
    @pytest.mark.parametrize(
        "header",
        [
            "",
            "Bearer",
            "Bearer ",
            "Basic dXNlcjpwYXNz",
            "Bearer tdg_000000000000_" + "0" * 64,
            "Bearer a b",
            "Bearer\ttdg_000000000000_" + "0" * 64,
            "tdg_000000000000_" + "0" * 64,
            "Bearer \u00e9",
            "Bearer " + "a" * 10_000,
        ],
    )
    def test_what_is_none_is_refused(self, guarded, header):
        request = f"GET /api/v1/tables HTTP/1.1\r\nHost: x\r\nAuthorization: {header}\r\n"
        answer = exchange(guarded.url, f"{request}Connection: close\r\n\r\n".encode("latin-1"))
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b'"code":"unauthenticated"' in answer

    def test_the_scheme_is_of_any_case(self, guarded):
        token = guarded.token("reader", "*")
        headers = {"Authorization": f"bEaReR  {token}"}
        assert httpx.get(f"{guarded.url}/api/v1/tables", headers=headers).status_code == 200

    def test_two_are_not_taken(self, guarded):
        token = guarded.token("reader", "*")
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
        assert httpx.get(f"{guarded.url}/api/v1/tables", headers=twice).status_code == 401

    def test_a_token_in_the_url_is_none(self, guarded):
        token = guarded.token("reader", "*")
        url = f"{guarded.url}/api/v1/tables?access_token={token}&token={token}"
        assert httpx.get(url).status_code == 401

    def test_an_expired_one_is_refused(self, guarded):
        token = guarded.token("reader", "*", lifetime_s=1)
        with guarded.client(token) as client:
            assert _until_refused(client) < 1 + CACHE_S + 2

    def test_a_revoked_one_is_refused_within_five_seconds(self, guarded):
        token = guarded.token("reader", "*", label="leaver")
        other = guarded.token("reader", "*", label="leaver")
        with guarded.client(token) as client:
            assert client.get("/tables").status_code == 200
            assert revoke_token(guarded.database_url, token)
            assert _until_refused(client) < 5
        with guarded.client(other) as client:
            # The same principal's new one goes on.
            assert client.get("/tables").status_code == 200

    def test_no_answer_and_no_line_of_the_log_shows_one(self, guarded, caplog):
        caplog.set_level("DEBUG")
        good, bad = guarded.token("reader", "main"), f"tdg_{'1' * 12}_{'2' * 64}"
        texts = []
        for token in (good, bad):
            with guarded.client(token) as client:
                for path in ("/tables", f"/tables/{TABLE}", "/nothing"):
                    texts.append(client.get(path).text)
                texts.append(client.post(f"/tables/{TABLE}/commits", content=b"x").text)
        everything = "".join(texts) + "".join(str(vars(record)) for record in caplog.records)
        for token in (good, bad):
            assert token.rpartition("_")[2] not in everything


def _until_refused(client: httpx.Client) -> float:
    """Seconds of asking until the answer is a 401."""
    seconds = 0.0
    for _ in range(10_000):
        answer = client.get("/tables")
        if answer.status_code == 401:
            return seconds
        seconds += answer.elapsed.total_seconds()
    raise AssertionError("the token is still taken")

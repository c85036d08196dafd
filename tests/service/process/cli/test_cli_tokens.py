"""`tidegate token`: on a database, and on the embedded one beside its service."""

import json
import re

import httpx
import pytest

from tests.builders.flights import SCHEMA, TABLE
from tests.client.transport.loopback import Reply, loopback_server
from tests.service.catalog_managed.guarded import all_tokens, id_of, make_token
from tests.service.process.cli.command_line import invoke, serving, url_in
from tidegate_service.core.access.roles import Grant, Role
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate

TOKEN = re.compile(r"tdg_[0-9a-f]{12}_[0-9a-f]{64}\n\Z")


@pytest.fixture
def on(database_url):
    """Run `tidegate token ...` on this test's database, in this process."""
    return lambda *arguments: invoke("token", *arguments, "--database-url", database_url)


class TestCreate:
    def test_it_prints_the_token_and_nothing_else(self, database_url):
        asked = ("--role", "writer", "--on", "Main.Air", "--label", "etl")
        done = invoke("token", "create", *asked, "--database-url", database_url)
        assert (done.exit_code, done.stderr) == (0, "")
        assert TOKEN.match(done.stdout)
        (token,) = all_tokens(database_url)
        assert (token.id, token.principal) == (id_of(done.stdout), "etl")
        assert token.grants == (Grant(Role.WRITER, "main.air"),)
        assert token.expires_at is None
        assert token.live

    def test_roles_go_with_scopes_in_pairs(self, on, database_url):
        pairs = ("--role", "reader", "--on", "main", "--role", "admin", "--on", "main.air.flights")
        assert on("create", *pairs).exit_code == 0
        (token,) = all_tokens(database_url)
        assert token.principal == token.id
        assert set(token.grants) == {
            Grant(Role.READER, "main"),
            Grant(Role.ADMIN, "main.air.flights"),
        }

    @pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("12h", 43200), ("30d", 2592000)])
    def test_it_expires(self, on, database_url, text, seconds):
        on("create", "--role", "reader", "--on", "*", "--expires", text)
        (token,) = all_tokens(database_url)
        assert (token.expires_at - token.created_at).total_seconds() == seconds

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--role", "owner", "--on", "*"), "'owner'"),
            (("--role", "reader"), "--on"),
            (("--on", "*"), "--role"),
            (("--role", "reader", "--on", "a.b.c.d"), "found 'a.b.c.d'"),
            (("--role", "reader", "--on", "a b"), "--on: expected"),
            (("--role", "reader", "--on", "a", "--on", "b"), "as many --role as --on"),
            (
                ("--role", "reader", "--on", "a", "--role", "admin", "--on", "A"),
                "found two on the same",
            ),
            (("--role", "reader", "--on", "*", "--expires", "soon"), "found 'soon'"),
            (("--role", "reader", "--on", "*", "--expires", "0d"), "found '0d'"),
            (("--role", "reader", "--on", "*", "--label", "a b"), "expected a label"),
            (("--role", "reader", "--on", "*", "--label", "operator"), "expected another label"),
            (("--role", "reader", "--on", "*", "--label", "Tidegate"), "found 'Tidegate'"),
            (("--role", "reader", "--on", "*", "--label", "anonymous"), "expected another label"),
        ],
    )
    def test_what_cannot_be_one_is_said(self, database_url, arguments, message):
        done = invoke("token", "create", *arguments, "--database-url", database_url)
        assert done.exit_code != 0
        assert message in done.output
        assert all_tokens(database_url) == []


class TestListAndRevoke:
    def test_they_are_shown_without_their_secrets(self, on, database_url):
        valid = make_token(database_url, Grant(Role.READER, "main"), label="reports")
        gone = make_token(database_url, Grant(Role.ADMIN, "*"), label="leaver", lifetime_s=60)
        revoked = on("revoke", id_of(gone))
        assert (revoked.exit_code, revoked.stdout) == (0, f"the token {id_of(gone)} is revoked\n")
        shown = on("list").stdout
        newer, older = shown.splitlines()[1:]
        assert newer.startswith(f"{id_of(gone)}  leaver ")
        assert newer.endswith(" revoked")
        assert "admin on *" in newer
        assert re.fullmatch(
            rf"{id_of(valid)}  reports +reader on main +\S+ \S+ UTC +never +valid", older
        )
        for token in (valid, gone):
            assert token.rpartition("_")[2] not in shown

    @pytest.mark.parametrize(
        ("token_id", "message"),
        [("0" * 12, "there is no token"), ("x", "12 hex digits"), ("tdg_1", "12 hex digits")],
    )
    def test_what_is_none_cannot_be_revoked(self, on, token_id, message):
        done = on("revoke", token_id)
        assert done.exit_code == 1
        assert message in done.stderr

    def test_not_twice(self, on, database_url):
        token = make_token(database_url, Grant(Role.READER, "main"))
        assert on("revoke", id_of(token)).exit_code == 0
        assert on("revoke", id_of(token)).exit_code == 1


class TestDatabases:
    def test_one_that_does_not_answer(self):
        done = invoke("token", "list", "--database-url", "postgresql://u:geheim@127.0.0.1:1/d")
        assert done.exit_code == 1
        assert "does not answer" in done.stderr
        assert "geheim" not in done.stdout + done.stderr

    def test_one_that_is_not_migrated(self, empty_database_url):
        done = invoke("token", "list", "--database-url", empty_database_url)
        assert done.exit_code == 1
        assert "run `tidegate migrate`" in done.stderr

    @pytest.mark.parametrize("command", [("list",), ("create", "--role", "admin", "--on", "*")])
    def test_a_folder_that_no_service_has_used_is_not_made(self, tmp_path, command):
        folder = tmp_path / "elsewhere"
        done = invoke("token", *command, "--data-dir", folder)
        assert done.exit_code == 1
        assert str(folder) in done.stderr
        assert "--database-url" in done.stderr
        assert not folder.exists()

    def test_the_embedded_one_without_and_beside_its_service(self, tmp_path):
        where = ("--data-dir", tmp_path)
        with EmbeddedPostgres(tmp_path) as postgres:
            migrate.upgrade(postgres.url)
        before = invoke("token", "create", "--role", "admin", "--on", "*", *where)
        assert TOKEN.match(before.stdout), before.stderr
        with serving("--auth", "tokens", *where) as (_, printed):
            url = url_in(printed)
            beside = invoke("token", "create", "--role", "reader", "--on", "*", *where)
            assert TOKEN.match(beside.stdout), beside.stderr
            for token in (before.stdout.strip(), beside.stdout.strip()):
                answer = httpx.get(
                    f"{url}/api/v1/tables", headers={"Authorization": f"Bearer {token}"}
                )
                assert answer.status_code == 200
            assert httpx.get(f"{url}/api/v1/tables").status_code == 401

            schema = tmp_path / "schema.json"
            schema.write_text(json.dumps(SCHEMA))
            create = ("table", "create", TABLE, "--schema", schema, "--url", url)
            refused = invoke(*create)
            assert "unauthenticated: expected the header" in refused.stderr
            made = invoke(*create, TIDEGATE_TOKEN=before.stdout.strip())
            assert made.exit_code == 0, made.stderr
            read = invoke("table", "list", "--url", url, TIDEGATE_TOKEN=beside.stdout.strip())
            assert TABLE in read.stdout


class TestCallers:
    @pytest.mark.parametrize("token", ["se\ncret", "se cret", "secrét", "secret\n"])
    def test_what_is_no_token_is_not_repeated(self, shared_server, token):
        done = invoke("table", "list", "--url", shared_server, TIDEGATE_TOKEN=token)
        assert done.exit_code == 1
        assert "TIDEGATE_TOKEN holds no token" in done.output
        assert "cret" not in done.output

    def test_a_redirection_is_not_followed_with_one(self):
        with loopback_server() as loopback:
            loopback.then(Reply(302, b"", headers={"Location": f"{loopback.url}/elsewhere"}))
            done = invoke("table", "list", "--url", loopback.url, TIDEGATE_TOKEN="secret")
            (seen,) = loopback.seen
        assert done.exit_code == 1
        assert "302" in done.output
        assert seen.headers["authorization"] == "Bearer secret"

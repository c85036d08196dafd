"""Connecting, and what a lake asks of the service."""

import json
import re

import pytest

import tidegate
from tests.client import answers
from tests.client.transport.loopback import Drop, OfService, Reply
from tidegate.errors import (
    InvalidRequest,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    UnexpectedAnswer,
)
from tidegate_protocol.schema.table_schema import parse_schema


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    monkeypatch.delenv("TIDEGATE_URL", raising=False)
    monkeypatch.delenv("TIDEGATE_TOKEN", raising=False)


class SparkLikeSchema:
    """What `create_table` relies on in Spark's StructType."""

    def json(self) -> str:
        return answers.SCHEMA_TEXT


class TestConnect:
    def test_url_and_token_come_from_the_environment(self, monkeypatch, loopback):
        monkeypatch.setenv("TIDEGATE_URL", f"{loopback.url}/")
        monkeypatch.setenv("TIDEGATE_TOKEN", "from-the-environment")
        loopback.answer(200, answers.head())
        with tidegate.connect() as lake:
            lake.table("main.air.flights")
        assert loopback.seen[0].headers["authorization"] == "Bearer from-the-environment"

    def test_arguments_go_before_the_environment(self, monkeypatch, loopback):
        monkeypatch.setenv("TIDEGATE_URL", "http://elsewhere.invalid")
        monkeypatch.setenv("TIDEGATE_TOKEN", "from-the-environment")
        loopback.answer(200, answers.head())
        with tidegate.connect(loopback.url, token="given") as lake:
            lake.table("main.air.flights")
        assert loopback.seen[0].headers["authorization"] == "Bearer given"

    def test_without_a_token_none_is_sent(self, monkeypatch, loopback):
        monkeypatch.setenv("TIDEGATE_TOKEN", "")
        loopback.answer(200, answers.head())
        with tidegate.connect(loopback.url) as lake:
            lake.table("main.air.flights")
        assert "authorization" not in loopback.seen[0].headers

    def test_nothing_is_sent_before_something_is_asked(self, loopback):
        tidegate.connect(loopback.url).close()
        assert loopback.seen == []

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            (None, "TIDEGATE_URL"),
            ("", "TIDEGATE_URL"),
            ("127.0.0.1:8720", "http://"),
            ("ftp://host", "http://"),
            ("http://", "http://"),
            ("http://host?x=1", "query"),
            ("http://host#x", "fragment"),
        ],
    )
    def test_a_url_that_cannot_work_is_refused(self, url, said):
        with pytest.raises(ValueError, match=said):
            tidegate.connect(url)

    def test_credentials_in_the_url_are_refused_without_being_repeated(self):
        with pytest.raises(ValueError, match="token") as raised:
            tidegate.connect("http://ada:sesame@host")
        assert "sesame" not in str(raised.value)

    @pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "naïve"])
    def test_a_token_that_cannot_work_is_refused_without_being_repeated(self, token):
        with pytest.raises(ValueError, match="the token") as raised:
            tidegate.connect("http://host", token=token)
        assert not token or token not in str(raised.value)

    @pytest.mark.parametrize("timeout", [0, -1, float("nan")])
    def test_a_timeout_that_leaves_no_time_is_refused(self, timeout):
        with pytest.raises(ValueError, match="timeout"):
            tidegate.connect("http://host", timeout=timeout)

    def test_the_token_is_in_no_repr(self):
        lake = tidegate.connect("http://host", token="sesame")
        assert repr(lake) == "Lake('http://host')"
        assert "sesame" not in repr(vars(lake))
        lake.close()


class TestCreate:
    @pytest.mark.parametrize(
        "schema",
        [
            answers.SCHEMA,
            answers.SCHEMA_TEXT,
            SparkLikeSchema(),
            parse_schema(answers.SCHEMA_TEXT),
        ],
        ids=["mapping", "text", "spark", "parsed"],
    )
    def test_a_schema_is_taken_in_every_form(self, scripted_lake, loopback, schema):
        loopback.answer(201, answers.head(version=0))
        table = scripted_lake.create_table("main.air.flights", schema=schema)
        assert loopback.seen[0].json["schema"] == answers.SCHEMA
        assert (table.id, table.name) == (answers.TABLE_ID, "main.air.flights")

    def test_everything_asked_for_is_in_the_body(self, scripted_lake, loopback):
        loopback.answer(201, answers.head(version=0))
        scripted_lake.create_table(
            "main.air.flights",
            schema=answers.SCHEMA,
            partition_by=["month"],
            properties={"delta.appendOnly": "true"},
            comment="all of them",
            location="file:///elsewhere",
            catalog_managed=True,
            user_metadata="why",
        )
        (seen,) = loopback.seen
        assert (seen.method, seen.path) == ("POST", "/api/v1/tables")
        assert seen.json == {
            "name": "main.air.flights",
            "schema": answers.SCHEMA,
            "partition_columns": ["month"],
            "properties": {"delta.appendOnly": "true"},
            "comment": "all of them",
            "location": "file:///elsewhere",
            "catalog_managed": True,
            "user_metadata": "why",
        }

    def test_one_partition_column_may_be_named_by_itself(self, scripted_lake, loopback):
        loopback.answer(201, answers.head(version=0))
        scripted_lake.create_table("a.b.c", schema=answers.SCHEMA, partition_by="month")
        assert loopback.seen[0].json["partition_columns"] == ["month"]

    @pytest.mark.parametrize("text", ["{", "[]", '"text"', "", "\ud800"])
    def test_a_text_that_is_no_json_object_is_not_sent(self, scripted_lake, loopback, text):
        with pytest.raises(InvalidRequest) as raised:
            scripted_lake.create_table("a.b.c", schema=text)
        assert raised.value.code == "invalid-schema"
        assert loopback.seen == []

    def test_where_no_service_runs_the_first_attempt_says_so(self, caplog):
        with (
            tidegate.connect("http://127.0.0.1:1", timeout=1) as lake,
            pytest.raises(ServiceUnavailable, match="is the service running there") as raised,
        ):
            lake.create_table("a.b.c", schema=answers.SCHEMA)
        assert "TIDEGATE_URL" in str(raised.value)
        (warning,) = caplog.records
        assert warning.levelname == "WARNING"
        said = warning.getMessage()
        assert re.search(r"at http://127.0.0.1:1: .* trying again, for 1 s at most$", said)

    def test_what_is_no_schema_at_all_is_a_type_error(self, scripted_lake):
        with pytest.raises(TypeError, match="schema"):
            scripted_lake.create_table("a.b.c", schema=42)

    def test_a_lost_answer_is_not_asked_for_again(self, scripted_lake, loopback):
        """A second copy would be told that the table exists, by the first one."""
        loopback.then(Drop())
        with pytest.raises(ServiceUnavailable) as raised:
            scripted_lake.create_table("a.b.c", schema=answers.SCHEMA)
        assert not raised.value.definite
        assert len(loopback.seen) == 1

    def test_a_busy_service_is_asked_again(self, scripted_lake, loopback):
        loopback.answer(429, answers.failure("backpressure", 429), retry_after="1")
        loopback.answer(201, answers.head())
        scripted_lake.create_table("a.b.c", schema=answers.SCHEMA)
        assert len(loopback.seen) == 2

    def test_an_existing_table_is_said_to_exist(self, scripted_lake, loopback):
        loopback.answer(409, answers.failure("table-exists", 409))
        with pytest.raises(TableAlreadyExists):
            scripted_lake.create_table("a.b.c", schema=answers.SCHEMA)


class TestRegister:
    def test_name_and_location_are_sent(self, scripted_lake, loopback):
        loopback.answer(201, answers.head())
        table = scripted_lake.register_table("main.air.flights", "file:///lake/flights")
        (seen,) = loopback.seen
        assert (seen.method, seen.path) == ("POST", "/api/v1/tables/register")
        assert json.loads(seen.body) == {
            "name": "main.air.flights",
            "location": "file:///lake/flights",
        }
        assert table.name == "main.air.flights"

    def test_a_lost_answer_is_asked_for_again(self, scripted_lake, loopback):
        """The second copy finds the table that the first one has registered."""
        loopback.then(Drop())
        loopback.answer(200, answers.head())
        table = scripted_lake.register_table("main.air.flights", "file:///lake/flights")
        assert table.name == "main.air.flights"
        assert len(loopback.seen) == 2


class TestFind:
    def test_a_table_is_found_by_name(self, scripted_lake, loopback):
        loopback.answer(200, answers.head())
        table = scripted_lake.table("Main.Air.Flights")
        assert loopback.seen[0].path == "/api/v1/tables/Main.Air.Flights"
        assert table.location == "file:///lake/main/air/flights"
        assert "main.air.flights" in repr(table)

    @pytest.mark.parametrize(
        ("name", "path"), [("a/b", "a%2Fb"), ("a b?c", "a%20b%3Fc"), ("..", "%2E%2E")]
    )
    def test_a_name_stays_one_segment_of_the_path(self, scripted_lake, loopback, name, path):
        loopback.answer(404, answers.failure("table-not-found", 404))
        with pytest.raises(TableNotFound):
            scripted_lake.table(name)
        assert loopback.seen[0].path == f"/api/v1/tables/{path}"

    def test_an_empty_name_names_no_table(self, scripted_lake, loopback):
        with pytest.raises(TableNotFound):
            scripted_lake.table("")
        with pytest.raises(TableNotFound):
            scripted_lake.forget_table("")
        assert loopback.seen == []

    @pytest.mark.parametrize(
        "body",
        [b"<html>log in</html>", b"{}", b'{"id": 1}', b"\xff", b"", b'{"id":' + b"[" * 10**5],
    )
    def test_a_success_that_is_no_table_is_unexpected(self, scripted_lake, loopback, body):
        loopback.then(OfService(200, body))
        with pytest.raises(UnexpectedAnswer):
            scripted_lake.table("a.b.c")

    @pytest.mark.parametrize("headers", [{}, {"X-Request-Id": "of-a-cache"}])
    def test_a_success_of_somebody_else_is_unexpected_even_if_it_is_a_table(
        self, scripted_lake, loopback, headers
    ):
        loopback.then(Reply(200, json.dumps(answers.head()).encode(), headers))
        with pytest.raises(UnexpectedAnswer, match="has to pass that header on"):
            scripted_lake.table("a.b.c")

    def test_a_head_whose_metadata_is_none_is_unexpected(self, scripted_lake, loopback):
        loopback.answer(200, answers.head(metadata={"id": 3}))
        with pytest.raises(UnexpectedAnswer):
            scripted_lake.table("a.b.c")

    def test_tables_are_asked_for_page_by_page(self, scripted_lake, loopback):
        pages = [
            {"tables": [answers.head("a.b.c"), answers.head("a.b.d")], "next_cursor": "a.b.d"},
            {"tables": [answers.head("a.b.e")], "next_cursor": None},
        ]
        loopback.answer(200, pages[0])
        names = scripted_lake.tables("a.b.")
        assert [next(names).name, next(names).name] == ["a.b.c", "a.b.d"]
        assert len(loopback.seen) == 1, "the next page is asked for when it is wanted"
        loopback.answer(200, pages[1])
        assert [table.name for table in names] == ["a.b.e"]
        assert [seen.path for seen in loopback.seen] == [
            "/api/v1/tables?prefix=a.b.&limit=100",
            "/api/v1/tables?prefix=a.b.&limit=100&cursor=a.b.d",
        ]


class TestForget:
    def test_a_table_is_forgotten(self, scripted_lake, loopback):
        loopback.then(OfService(204))
        scripted_lake.forget_table("a.b.c")
        assert (loopback.seen[0].method, loopback.seen[0].path) == (
            "DELETE",
            "/api/v1/tables/a.b.c",
        )

    def test_another_success_is_not_the_services(self, scripted_lake, loopback):
        loopback.then(OfService(200, b"{}"))
        with pytest.raises(UnexpectedAnswer):
            scripted_lake.forget_table("a.b.c")

    def test_a_lost_answer_is_not_asked_for_again(self, scripted_lake, loopback):
        loopback.then(Drop())
        with pytest.raises(ServiceUnavailable):
            scripted_lake.forget_table("a.b.c")
        assert len(loopback.seen) == 1

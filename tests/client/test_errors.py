"""The tree of errors, and what problem bodies become."""

import inspect
import pickle

import msgspec
import pytest

from tidegate import errors
from tidegate.errors import (
    ConcurrentAppendException,
    ConflictError,
    ConflictInfo,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    ServiceUnavailable,
    TableNotFound,
    TidegateError,
    TooLarge,
    TransactionAborted,
    TransactionClosed,
    Unauthenticated,
    UnexpectedAnswer,
)
from tidegate.wire import problems
from tidegate.wire.exchange import Response
from tidegate.wire.problems import ERRORS
from tidegate_protocol.base.problems import PROBLEMS, Code

ALL = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TidegateError)
]


REQUEST_ID = "request-1"


def answer(status: int, /, **fields: object) -> Response:
    """A problem as the service answers the request with it; a field that is None is left out."""
    fixed = {
        "type": f"urn:tidegate:problem:{fields['code']}",
        "status": status,
        "instance": REQUEST_ID,
    }
    body = {name: value for name, value in (fixed | fields).items() if value is not None}
    headers = {"content-type": "application/problem+json"}
    return Response(status=status, headers=headers, body=msgspec.json.encode(body))


def error_of(response: Response) -> TidegateError:
    return problems.error_of(response, request_id=REQUEST_ID)


@pytest.mark.parametrize("code", list(Code))
def test_a_code_is_raised_with_everything_its_problem_says(code):
    error = error_of(
        answer(
            PROBLEMS[code].status,
            code=code,
            title=PROBLEMS[code].title,
            detail="the detail",
            hint="the hint",
            transaction_id="tx",
        )
    )
    assert type(error) is ERRORS[code]
    assert (error.code, error.status) == (code, PROBLEMS[code].status)
    assert (error.detail, error.hint) == ("the detail", "the hint")
    assert (error.transaction_id, error.request_id) == ("tx", "request-1")
    assert not error.definite


@pytest.mark.parametrize("code", [code for code in Code if PROBLEMS[code].error_class])
def test_a_conflict_bears_the_name_that_delta_gives_it(code):
    assert ERRORS[code].__name__ == PROBLEMS[code].error_class
    assert issubclass(ERRORS[code], ConflictError)


FROM_ANYBODY = [
    (302, UnexpectedAnswer),
    (400, UnexpectedAnswer),
    (401, Unauthenticated),
    (403, PermissionDenied),
    (404, NotFound),
    (413, TooLarge),
    (418, UnexpectedAnswer),
    (429, ServiceUnavailable),
    (500, ServiceUnavailable),
    (503, ServiceUnavailable),
]


@pytest.mark.parametrize(
    ("status", "expected"),
    [*FROM_ANYBODY, (409, ConflictError), (410, TransactionAborted), (422, InvalidRequest)],
)
def test_an_unknown_code_of_the_service_is_raised_by_its_status(status, expected):
    error = error_of(answer(status, code="of-the-future"))
    assert type(error) is expected
    assert error.code == "of-the-future"


@pytest.mark.parametrize(
    ("status", "expected"),
    [*FROM_ANYBODY, *((status, UnexpectedAnswer) for status in (409, 410, 422))],
)
@pytest.mark.parametrize(
    "body",
    [
        b'{"code":"concurrent-append"}',
        b"<html>",
        b"",
        b"\xff",
        b'{"code":"\xff"}',
        b"[]",
        b'{"code":' + b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("kind", ["application/problem+json", "application/json"])
def test_what_is_no_problem_of_the_service_says_no_more_than_its_status(
    status, expected, body, kind
):
    error = error_of(Response(status=status, headers={"content-type": kind}, body=body))
    assert type(error) is expected
    assert error.code is None
    assert error.request_id == REQUEST_ID
    assert "expected a problem from the service" in str(error)


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "about:blank"},
        {"type": "urn:tidegate:problem:metadata-changed"},
        {"type": None},
        {"code": None, "type": "urn:tidegate:problem:concurrent-append"},
        {"instance": "another-request"},
        {"instance": None},
        {"status": 422},
        {"status": None},
    ],
)
def test_a_problem_is_the_services_by_its_type_its_status_and_the_requests_id(changes):
    ours = {"code": "concurrent-append"}
    assert type(error_of(answer(409, **ours))) is ConcurrentAppendException
    error = error_of(answer(409, **(ours | changes)))
    assert type(error) is UnexpectedAnswer
    assert error.code is None


@pytest.mark.parametrize("kind", ["application/json", "text/html", None])
def test_and_by_its_media_type(kind):
    ours = answer(409, code="concurrent-append")
    headers = {} if kind is None else {"content-type": kind}
    assert error_of(Response(status=409, headers=headers, body=ours.body)).code is None
    headers = {"content-type": "Application/Problem+JSON; charset=utf-8"}
    assert error_of(Response(status=409, headers=headers, body=ours.body)).code is not None


def test_an_answer_to_another_request_says_what_has_to_be_mended():
    error = error_of(answer(409, code="concurrent-append", instance="of-the-gateway"))
    assert "expected an answer to request request-1, found one to 'of-the-gateway'" in str(error)
    assert "has to pass X-Request-Id on as it is" in str(error)


def test_a_conflicts_message_names_the_winner_and_the_next_step():
    error = error_of(
        answer(
            409,
            code="concurrent-append",
            detail="files were added to month=5",
            hint="read again at version 13",
            conflict={
                "version": 13,
                "operation": "WRITE",
                "timestamp": 1700000000000,
                "application_id": "job-7",
                "engine_info": "loader/1",
                "user_metadata": "nightly load",
                "path": "month=5/part-0.parquet",
                "partition": {"month": "5", "day": None},
            },
        )
    )
    assert error.conflict == ConflictInfo(
        version=13,
        operation="WRITE",
        timestamp=1700000000000,
        application_id="job-7",
        engine_info="loader/1",
        user_metadata="nightly load",
        path="month=5/part-0.parquet",
        partition={"month": "5", "day": None},
    )
    assert str(error) == (
        "[DELTA_CONCURRENT_APPEND] files were added to month=5. The winner is version 13 (WRITE) "
        "by job-7, userMetadata 'nightly load', partition month=5, day=None. Next: read again at "
        "version 13. "
        "[code concurrent-append, request request-1]"
    )


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (ConflictInfo(version=3), "version 3 (operation not recorded)"),
        (ConflictInfo(version=3, operation="WRITE", engine_info="loader/1"), "(WRITE) by loader/1"),
        (ConflictInfo(version=3, operation="WRITE", app_id="s-1"), "application s-1"),
        (ConflictInfo(version=3, operation="WRITE", domain="delta.x"), "metadata domain delta.x"),
    ],
)
def test_a_winner_is_described_by_what_is_known_of_it(info, said):
    assert said in str(ConflictError("lost", conflict=info))


def test_all_that_is_wrong_with_a_request_is_said():
    places = [{"where": "/a", "why": "too big"}, {"where": "/b", "why": "missing"}]
    error = error_of(answer(422, code="invalid-request", detail="/a: too big", errors=places))
    assert error.errors == ("/a: too big", "/b: missing")
    assert "/b: missing" in str(error)


def test_one_thing_that_is_wrong_is_said_once():
    places = [{"where": "/a", "why": "too big"}]
    error = error_of(answer(422, code="invalid-request", detail="/a: too big", errors=places))
    assert str(error).count("too big") == 1


def test_a_problem_without_detail_says_its_title():
    assert "No such table" in str(
        error_of(answer(404, code="table-not-found", title="No such table"))
    )


def test_where_the_service_gives_no_hint_the_class_does():
    assert TableNotFound.next_step in str(error_of(answer(404, code="table-not-found", detail="x")))


def test_a_used_up_transaction_says_nothing_of_what_it_was_used_for():
    """Were it definite, a second `commit` would get the files of the first one deleted."""
    assert not TransactionClosed("used up").definite


@pytest.mark.parametrize("kind", ALL)
def test_errors_survive_the_way_between_processes(kind):
    error = kind(
        "what happened",
        code="a-code",
        status=409,
        conflict=ConflictInfo(version=3, partition={"month": None}),
        transaction_id="tx",
        definite=True,
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert vars(again) == vars(error)
    assert str(again) == str(error)

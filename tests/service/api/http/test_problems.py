"""What a problem says is bounded, whatever it is about."""

import msgspec
import pytest

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_service.api.http.problems.problems import (
    LONGEST_DETAIL,
    BadRequest,
    BodyError,
    of_invalid,
    of_service_error,
)
from tidegate_service.api.http.request.requests import RequestState


def test_a_long_reason_is_cut_off_wherever_it_stands():
    state = RequestState(id="r")
    invalid = Invalid(code=Code.INVALID_ACTION, detail="x" * 1_000_000, action_index=3)
    body = msgspec.json.decode(of_invalid(state, invalid).body)
    cut = "x" * LONGEST_DETAIL + "..."
    assert body["detail"] == state.detail == cut
    assert body["errors"] == [{"where": "/actions/3", "why": cut}]


def test_an_answered_error_holds_no_frame():
    """In which a body is. A task that failed with it may be in one, and then both wait for a
    collection."""

    def read(body: bytes) -> None:
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise BadRequest([BodyError(where="", why="no text")]) from error

    with pytest.raises(BadRequest) as raised:
        read(b"\xff")
    error = raised.value
    assert error.__traceback__ is not None
    of_service_error(RequestState(id="r"), error)
    assert error.__traceback__ is None
    assert error.__cause__ is not None
    assert error.__cause__.__traceback__ is None

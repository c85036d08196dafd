"""What a problem says is bounded, whatever it is about."""

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_service.api.http.problems import LONGEST_DETAIL, of_invalid
from tidegate_service.api.http.requests import RequestState


def test_a_long_reason_is_cut_off_wherever_it_stands():
    state = RequestState(id="r")
    invalid = Invalid(code=Code.INVALID_ACTION, detail="x" * 1_000_000, action_index=3)
    body = msgspec.json.decode(of_invalid(state, invalid).body)
    cut = "x" * LONGEST_DETAIL + "..."
    assert body["detail"] == state.detail == cut
    assert body["errors"] == [{"where": "/actions/3", "why": cut}]

"""What the table of problems says of its codes."""

from tidegate_protocol.base.problems import PROBLEMS, Code

MENDED_BY_A_HUMAN = {Code.TABLE_QUARANTINED}


def test_what_may_pass_by_itself_is_retryable():
    passing = {code for code, problem in PROBLEMS.items() if problem.status in (429, 500, 503)}
    retryable = {code for code, problem in PROBLEMS.items() if problem.retryable}
    assert retryable == passing - MENDED_BY_A_HUMAN

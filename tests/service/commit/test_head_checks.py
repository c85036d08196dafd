"""What an instance knows of heads is kept of the tables that are committed to."""

from dataclasses import replace

from tests.service.commit.test_table_ids import table
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.instance.log_checks import TABLES


def test_tables_that_are_committed_to_are_not_forgotten_for_others():
    checks, active, idle = HeadChecks(), table(), table()
    for number in range(TABLES):
        each = (active, idle)[number] if number < 2 else replace(idle, id=str(number))
        checks.checked(each, 0, 0.0, database="d")
    checks.saved(active, 1.0, database="d")
    checks.checked(replace(idle, id="one more"), 0, 0.0, database="d")
    assert checks.known(active.id) is not None
    assert checks.known(idle.id) is None

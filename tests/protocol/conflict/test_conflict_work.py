"""What judging many winners takes is not what looking at the table, or the transaction, takes."""

from dataclasses import replace

import pytest

from tests.builders.actions import add, features, metadata, remove
from tests.builders.ledgers import prepared, state, winner
from tests.builders.lines import column
from tests.builders.proposals import reads
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.proposal.transaction import PreparedTransaction

WINNERS = 20


class Counted(dict[str, str]):
    """Properties that know how often they were read."""

    reads = 0

    def items(self):
        self.reads += 1
        return super().items()


def table(**properties: str) -> tuple[Metadata, Counted]:
    found = Counted(properties)
    of_table = metadata([column("x"), column("v")], ["x"])
    return Metadata(
        id=of_table.id,
        schema_string=of_table.schema_string,
        partition_columns=of_table.partition_columns,
        configuration=found,
        raw=of_table.raw,
    ), found


@pytest.mark.parametrize("suspended", ["false", "true"])
def test_properties_are_read_once_for_all_winners(suspended):
    """A table may have thousands of them."""
    of_table, properties = table(**{"delta.rowTrackingSuspended": suspended})
    before = state(of_table, features("rowTracking", "domainMetadata"))
    mine = prepared(add("b", {"x": "1"}), at=before, reads=reads("x = 1"))
    properties.reads = 0
    theirs = [
        winner(add(f"{n}", {"x": "2"}), remove(f"{n - 1}"), version=1 + n) for n in range(WINNERS)
    ]
    outcome = check_conflicts(mine, theirs)
    assert isinstance(outcome, PreparedTransaction)
    # By the rule of row tracking, and by that of added files.
    assert properties.reads <= 2


def test_removed_files_are_looked_up_once_for_all_winners():
    mine = prepared(remove("a"), remove("b"))
    found = mine.removed_files()
    assert set(found) == {"a", "b"}
    assert replace(mine, checked_through=3).removed_files() is found
    fewer = replace(mine, actions=mine.actions[1:])
    assert set(fewer.removed_files()) == {"b"}
    assert set(mine.removed_files()) == {"a", "b"}

"""What the ledger dates other writers' commits by, where they say it themselves."""

import pytest

from tests.builders.actions import add, commit_info, metadata
from tests.builders.ledgers import NOW, TABLE, ledger
from tidegate_protocol.ledger.outcomes import Quarantined
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.replay.commits import MAX_TIMESTAMP, UnreadableCommit
from tidegate_protocol.replay.foreign import in_commit_timestamp


class TestInCommitTimestamp:
    ON = metadata(properties={"delta.enableInCommitTimestamps": "true"})

    def test_where_it_is_switched_on_it_is_the_time(self):
        actions = (commit_info(inCommitTimestamp=5), add())
        assert in_commit_timestamp(3, actions, before=self.ON) == 5
        assert in_commit_timestamp(3, (*actions, self.ON), before=None) == 5
        for before in (None, metadata()):
            assert in_commit_timestamp(3, actions, before=before) is None
        assert in_commit_timestamp(3, (*actions, metadata()), before=self.ON) is None

    def test_a_commit_may_have_none(self):
        for actions in ([add()], [commit_info(timestamp=5)], [commit_info(inCommitTimestamp=-1)]):
            assert in_commit_timestamp(3, actions, before=self.ON) is None

    def test_one_that_leaves_no_room_after_it_is_refused(self):
        last = [commit_info(inCommitTimestamp=MAX_TIMESTAMP + 3)]
        assert in_commit_timestamp(3, last, before=self.ON) == MAX_TIMESTAMP + 3
        with pytest.raises(UnreadableCommit, match=r"253402300800002 ms.* at most 253402300800001"):
            in_commit_timestamp(2, last, before=self.ON)
        assert in_commit_timestamp(2, last, before=metadata()) is None

    def test_and_quarantines_the_table(self):
        content = encode_lines([commit_info(inCommitTimestamp=MAX_TIMESTAMP + 2), self.ON])
        after, outcome = ledger().foreign_commit(TABLE, content, modified_ms=NOW)
        assert isinstance(outcome, Quarantined)
        assert after.tables[TABLE].latest_version == 0

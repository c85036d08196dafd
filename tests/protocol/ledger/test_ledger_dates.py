"""What other writers' commits are dated by."""

import pytest

from tests.builders.actions import add, commit_info, metadata
from tests.builders.ledgers import NOW, TABLE, ledger
from tidegate_protocol.ledger.outcomes import Quarantined
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.replay.commits import MAX_TIMESTAMP, UnreadableCommit
from tidegate_protocol.replay.foreign import committed_ms, in_commit_timestamp


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


class TestCommitted:
    OURS = commit_info(timestamp=9, tidegate={"bodyDigest": "d"})

    @pytest.mark.parametrize(
        ("info", "switched_on", "expected"),
        [
            (commit_info(timestamp=9), False, 5),
            (commit_info(timestamp=9, inCommitTimestamp=8), False, 5),
            (commit_info(timestamp=9, inCommitTimestamp=8), True, 8),
            (commit_info(timestamp=9), True, 5),
            (OURS, False, 9),
            (commit_info(timestamp=-1, tidegate={"bodyDigest": "d"}), False, 5),
        ],
    )
    def test_by_delta_s_rule_but_for_ours(self, info, switched_on, expected):
        before = metadata(properties={"delta.enableInCommitTimestamps": f"{switched_on}".lower()})
        assert committed_ms(3, (info, add()), before=before, modified_ms=5) == expected

    def test_without_a_commit_info_by_the_file(self):
        assert committed_ms(3, (add(),), before=metadata(), modified_ms=5) == 5

    @pytest.mark.parametrize(
        ("modified_ms", "expected"), [(-1, 0), (MAX_TIMESTAMP + 4, MAX_TIMESTAMP + 3)]
    )
    def test_there_is_room_behind_the_date_of_any_file(self, modified_ms, expected):
        found = committed_ms(3, (add(),), before=metadata(), modified_ms=modified_ms)
        assert found == expected

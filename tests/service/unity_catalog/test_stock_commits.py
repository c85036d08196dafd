"""Commits that stock clients stage: the next version or nothing, once, byte for byte."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.builders.flights import add as own_add
from tests.service.unity_catalog.stock import Lines, add, commit_info, content, metadata


def error_of(answer):
    error = answer.json()["error"]
    assert error["code"] == answer.status_code
    assert error["message"]
    return error["type"]


class TestLanding:
    def test_the_bytes_become_the_version_unchanged(self, table):
        staged = table.commit(1)
        assert table.version(1) == (table.log / "_staged_commits" / staged.name).read_bytes()

    def test_it_is_published_before_it_is_answered(self, table):
        for version in range(1, 6):
            table.commit(version)
            assert (table.log / f"{version:020d}.json").exists()

    def test_its_row_says_who_wrote_what(self, stock, table):
        staged = table.commit(1, txnId="a-stock-transaction")
        name = f"main.air.{table.name}"
        (found, _) = stock.own.get(f"/tables/{name}/commits").json()["commits"]
        assert (found["version"], found["transaction_id"]) == (1, "a-stock-transaction")
        assert (found["engine_info"], found["operation"]) == ("a stock engine", "WRITE")
        assert found["timestamp"] == staged.said["timestamp"]

    def test_ours_are_judged_against_it(self, stock, table):
        name = f"/tables/main.air.{table.name}"
        table.commit(1, [add("taken.parquet")])
        removes = {"remove": {"path": "taken.parquet", "dataChange": True, "deletionTimestamp": 1}}
        table.commit(2, [removes], isBlindAppend=False, operation="DELETE")
        body = {
            "operation": "DELETE",
            "read_version": 1,
            "reads": {"files": ["taken.parquet"]},
            "actions": [removes],
        }
        lost = stock.own.post(f"{name}/commits", json=body)
        assert (lost.status_code, lost.json()["code"]) == (409, "concurrent-delete-read")

    def test_ours_and_theirs_follow_each_other(self, stock, table):
        table.commit(1)
        landed = stock.own.post(
            f"/tables/main.air.{table.name}/commits",
            json={"operation": "WRITE", "actions": [own_line()]},
        )
        assert landed.json()["version"] == 2, landed.text
        table.commit(3, **after(landed.json()["timestamp"]))
        assert table.load()["latest-table-version"] == 3
        versions = sorted(path.name for path in table.log.glob("*.json"))
        assert versions == [f"{version:020d}.json" for version in range(4)]


def own_line():
    return {"add": {**own_add()["add"], "partitionValues": {}}}


def after(timestamp):
    """What dates a commit after one of the service's own, whose time is the real one."""
    return {"inCommitTimestamp": timestamp + 1, "timestamp": timestamp + 1}


class TestRaces:
    def test_of_two_for_one_version_one_lands(self, table):
        first, second = table.stage(1), table.stage(1)
        assert table.propose(first).status_code == 200
        lost = table.propose(second)
        assert (lost.status_code, error_of(lost)) == (409, "CommitVersionConflictException")
        assert table.load()["latest-table-version"] == 1

    def test_at_once_too(self, table):
        for version in range(1, 6):
            rivals = [table.stage(version) for _ in range(4)]
            with ThreadPoolExecutor(4) as pool:
                statuses = [answer.status_code for answer in pool.map(table.propose, rivals)]
            assert sorted(statuses) == [200, 409, 409, 409]

    def test_a_version_that_ours_took_is_taken(self, stock, table):
        staged = table.stage(1)
        body = {"operation": "WRITE", "actions": [own_line()]}
        assert stock.own.post(f"/tables/main.air.{table.name}/commits", json=body).is_success
        assert table.propose(staged).status_code == 409

    def test_a_gap_is_refused_for_good(self, table):
        gap = table.propose(table.stage(2))
        assert (gap.status_code, error_of(gap)) == (400, "InvalidParameterValueException")
        assert "cannot follow version 0" in gap.json()["error"]["message"]
        table.commit(1)


class TestSentAgain:
    def test_the_same_file_is_recognized(self, table):
        staged = table.commit(1)
        for _ in range(2):
            again = table.propose(staged)
            assert again.status_code == 200
            assert again.json()["latest-table-version"] == 1

    def test_also_long_after_and_without_its_file(self, table):
        staged = table.commit(1)
        for version in range(2, 5):
            table.commit(version)
        shutil.rmtree(table.log / "_staged_commits")
        assert table.propose(staged).status_code == 200
        assert table.load()["latest-table-version"] == 4

    def test_also_by_an_index_made_from_the_log(self, stock, table):
        staged = table.commit(1, txnId="once")
        name = f"/tables/main.air.{table.name}"
        assert stock.own.delete(name).status_code == 204
        body = {
            "name": f"main.air.{table.name}",
            "location": table.location,
            "catalog_managed": True,
        }
        assert stock.own.post("/tables/register", json=body).status_code == 201
        assert table.propose(staged).status_code == 200
        assert table.propose(table.stage(1, txnId="once")).status_code == 200
        assert table.propose(table.stage(1)).status_code == 409
        table.commit(2)

    def test_the_same_work_in_another_file_is_recognized(self, table):
        table.commit(1, txnId="once")
        before = table.version(1)
        again = table.propose(table.stage(1, txnId="once"))
        assert again.status_code == 200
        assert table.version(1) == before
        assert table.load()["latest-table-version"] == 1

    def test_it_is_not_committed_a_second_time_as_another_version(self, table):
        table.commit(1, txnId="once")
        table.commit(2)
        for version in (2, 3):
            refused = table.propose(table.stage(version, txnId="once"))
            assert refused.status_code == 400
            assert "has landed as version 1" in refused.json()["error"]["message"]
        assert table.load()["latest-table-version"] == 2

    def test_one_that_lost_lands_as_a_later_version(self, table):
        table.commit(1)
        assert table.propose(table.stage(1, txnId="loser")).status_code == 409
        table.commit(2, txnId="loser")


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"file_size": 1}, "expected 1, as was said of it"),
            ({"timestamp": 1}, "expected 1, as was said of it"),
            ({"file_name": "../00000000000000000000.json"}, "is not <version of 20 digits>"),
            ({"file_name": "00000000000000000001.json"}, "is not <version of 20 digits>"),
            (
                {"file_name": "00000000000000000002.128e724d-f3df-458b-9cc4-0ff25adbca1b.json"},
                "is of version 2",
            ),
            (
                {"file_name": "00000000000000000001.128e724d-f3df-458b-9cc4-0ff25adbca1b.json"},
                "there is no staged file",
            ),
            ({"version": 3}, "is of version 1, not 3"),
        ],
    )
    def test_what_is_said_of_the_file_has_to_be_so(self, table, change, why):
        refused = table.propose(table.stage(1), **change)
        assert refused.status_code == 400
        assert why in refused.json()["error"]["message"]
        assert table.load()["latest-table-version"] == 0

    @pytest.mark.parametrize(
        ("spoil", "why"),
        [
            (lambda whole: whole[:-40], "is not a commit"),
            (lambda whole: b"", "is not a commit"),
            (lambda whole: b"\xff" + whole, "is not a commit"),
            (lambda whole: whole.split(b"\n", 1)[1], "begin with its commitInfo"),
            (lambda whole: whole + whole, "2 CommitInfo actions"),
            (lambda whole: whole + b"{}\n", "exactly one key"),
            (lambda whole: whole.replace(b'{"add"', b'{"remove":null,"add"'), "exactly one key"),
            (
                lambda whole: whole.replace(b'"dataChange"', b'"baseRowId":1.0,"dataChange"'),
                "got `float`",
            ),
        ],
        ids=[
            *("cut off", "empty", "no text", "no commitInfo", "twice"),
            *("an empty object", "a null action", "a fraction"),
        ],
    )
    def test_a_file_that_is_no_commit_is_refused(self, table, spoil, why):
        whole = content([commit_info(1), add()])
        spoilt = spoil(whole)
        refused = table.propose(
            table.stage_bytes(1, spoilt, json.loads(whole.split(b"\n")[0])["commitInfo"])
        )
        assert refused.status_code == 400
        assert why in refused.json()["error"]["message"]
        table.commit(1)

    def test_a_file_that_is_changed_after_it_was_proposed_changes_nothing(self, table):
        staged = table.commit(1)
        before = table.version(1)
        (table.log / "_staged_commits" / staged.name).write_bytes(b"something else")
        assert table.propose(staged).status_code == 200
        assert table.version(1) == before

    @pytest.mark.parametrize(
        ("lines", "info", "why"),
        [
            ([add(), {"add": {}}], {}, "is not a commit"),
            ([add("a"), add("a")], {}, "a"),
            ([add("../../elsewhere.parquet")], {}, "elsewhere.parquet"),
            ([add(partitionValues={"y": "1"})], {}, "y"),
            ([{"checkpointMetadata": {"version": 1}}], {}, "belongs into a checkpoint"),
            ([], {"inCommitTimestamp": None}, "inCommitTimestamp None"),
            ([], {"inCommitTimestamp": 5}, "expected one after that of the version before"),
            ([], {"txnId": "no id\n"}, "txnId"),
            ([], {"tidegate": {"bodyDigest": "0"}}, "marks the service's own"),
            ([metadata("another")], {}, "cannot change the table's id"),
        ],
    )
    def test_what_it_holds_is_checked_like_any_proposal(self, table, lines: Lines, info, why):
        staged = table.stage(1, lines, **info)
        if info.get("inCommitTimestamp", 0) is None:
            staged.said["timestamp"] = 1
        refused = table.propose(staged)
        assert refused.status_code == 400, refused.text
        assert why in refused.json()["error"]["message"]
        assert table.load()["latest-table-version"] == 0

    def test_the_table_s_id_cannot_be_changed(self, table):
        (changed,) = [metadata(table.table_id)]
        changed["metaData"]["configuration"]["io.unitycatalog.tableId"] = "another"
        refused = table.propose(table.stage(1, [changed], operation="SET TBLPROPERTIES"))
        assert refused.status_code == 400
        assert "io.unitycatalog.tableId cannot be changed" in refused.json()["error"]["message"]

    def test_the_published_note_is_believed_in_nothing(self, table):
        note = {"action": "set-latest-backfilled-version", "latest-published-version": 7}
        assert table.update(note).status_code == 400
        note["latest-published-version"] = 0
        assert table.update(note).status_code == 200

    @pytest.mark.parametrize(
        "body",
        [
            {"updates": [{"action": "no-such-action"}]},
            {"updates": [], "requirements": [{"type": "assert-something"}]},
            {"updates": [{"action": "add-commit"}]},
            {"updates": [{"action": "set-table-comment"}, {"action": "set-table-comment"}]},
            {"updates": [{"action": "set-table-comment", "comment": "without a commit"}]},
            {
                "updates": [
                    {"action": "set-properties", "updates": {"a": "1"}},
                    {"action": "remove-properties", "removals": ["a"]},
                ]
            },
            {},
        ],
    )
    def test_a_body_that_cannot_be_done_is_refused_for_good(self, stock, table, body):
        refused = stock.http.post(table.path, json=body)
        assert (refused.status_code, error_of(refused)) == (400, "InvalidParameterValueException")


class TestRequirements:
    def test_another_table_s_id_does_not_hold(self, table):
        staged = table.stage(1)
        commit = {"action": "add-commit", "commit": staged.said}
        wrong = [{"type": "assert-table-uuid", "uuid": "128e724d-f3df-458b-9cc4-0ff25adbca1b"}]
        refused = table.update(commit, requirements=wrong)
        assert (refused.status_code, error_of(refused)) == (
            409,
            "UpdateRequirementConflictException",
        )
        assert table.load()["latest-table-version"] == 0

    def test_the_etag_changes_with_metadata_only(self, table):
        before = table.load()["metadata"]["etag"]
        table.commit(1)
        assert table.load()["metadata"]["etag"] == before
        table.commit(2, [metadata(table.table_id, k="v")], operation="SET TBLPROPERTIES")
        changed = table.load()["metadata"]["etag"]
        assert changed != before
        staged = table.stage(3)
        commit = {"action": "add-commit", "commit": staged.said}
        stale = table.update(commit, requirements=[{"type": "assert-etag", "etag": before}])
        assert (stale.status_code, error_of(stale)) == (409, "UpdateRequirementConflictException")
        fresh = table.update(commit, requirements=[{"type": "assert-etag", "etag": changed}])
        assert fresh.status_code == 200


class TestAgreement:
    @pytest.mark.parametrize(
        ("said", "agrees"),
        [
            ({"action": "set-properties", "updates": {"k": "v"}}, True),
            ({"action": "set-properties", "updates": {"k": "w"}}, False),
            ({"action": "remove-properties", "removals": ["gone"]}, True),
            ({"action": "remove-properties", "removals": ["k"]}, False),
            ({"action": "set-table-comment", "comment": None}, True),
            ({"action": "set-table-comment", "comment": "another"}, False),
            ({"action": "set-partition-columns", "partition-columns": []}, True),
            ({"action": "set-partition-columns", "partition-columns": ["x"]}, False),
            ({"action": "set-columns", "columns": {"type": "struct", "fields": []}}, False),
            ({"action": "set-columns", "columns": {"type": "what"}}, False),
            (
                {"action": "set-domain-metadata", "updates": {"delta.rowTracking": {}}},
                True,
            ),
            ({"action": "set-domain-metadata", "updates": {"mine": {}}}, False),
            ({"action": "remove-domain-metadata", "removals": ["mine"]}, False),
        ],
    )
    def test_what_is_said_beside_a_commit_has_to_be_in_it(self, table, said, agrees):
        lines = [metadata(table.table_id, k="v")]
        answer = table.propose(table.stage(1, lines, operation="SET TBLPROPERTIES"), said)
        assert answer.status_code == (200 if agrees else 400), answer.text
        assert table.load()["latest-table-version"] == (1 if agrees else 0)

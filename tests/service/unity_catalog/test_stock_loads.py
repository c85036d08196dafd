"""Loading: whatever a stock client is told of is in the log. And what it sees of other tables."""

import json
import uuid

from tests.service.unity_catalog.stock import (
    COLUMNS,
    PROTOCOL,
    StockClient,
    StockTable,
    add,
    content,
    dashed,
)
from tests.service.unity_catalog.test_stock_commits import own_line


def own_table(stock, **fields) -> StockTable:
    """A table made by the service's own API, as stock clients know it."""
    name = f"t{uuid.uuid4().hex}"
    body = {"name": f"main.air.{name}", "schema": COLUMNS, **fields}
    made = stock.own.post("/tables", json=body)
    assert made.status_code == 201, made.text
    return StockTable(stock, name, "", made.json()["location"])


class TestComplete:
    def test_every_version_up_to_the_answered_one_is_in_the_log(self, start_service):
        # Between two commits, the publisher rests longer than a load takes.
        stock = StockClient(start_service(publish_interval_seconds=60).url)
        table = stock.create()
        for version in range(1, 8):
            body = {"operation": "WRITE", "actions": [own_line()]}
            landed = stock.own.post(f"/tables/main.air.{table.name}/commits", json=body)
            assert landed.json()["version"] == version
            loaded = table.load()
            assert (loaded["latest-table-version"], loaded["commits"]) == (version, [])
            assert (table.log / f"{version:020d}.json").exists()

    def test_what_it_says_is_the_table_at_that_version(self, stock, table):
        table.commit(1)
        loaded = table.load()["metadata"]
        properties = loaded["properties"]
        assert loaded["table-type"] == "MANAGED"
        assert properties["delta.feature.catalogManaged"] == "supported"
        assert properties["delta.lastUpdateVersion"] == "1" == str(loaded["last-commit-version"])
        assert properties["delta.lastCommitTimestamp"] == str(loaded["last-commit-timestamp-ms"])
        assert (properties["delta.minReaderVersion"], properties["delta.minWriterVersion"]) == (
            "3",
            "7",
        )


class TestOurTables:
    def test_a_catalog_managed_one_gets_its_id_by_one_commit(self, stock):
        table = own_table(stock, catalog_managed=True)
        before = stock.own.get(f"/tables/main.air.{table.name}").json()
        loaded = table.load()
        found = loaded["metadata"]["table-uuid"]
        assert found == before["id"]
        assert loaded["metadata"]["properties"]["io.unitycatalog.tableId"] == found
        assert (before["latest_version"], loaded["latest-table-version"]) == (0, 1)
        (line,) = [line for line in table.version(1).splitlines() if b"metaData" in line]
        configuration = json.loads(line)["metaData"]["configuration"]
        assert configuration["io.unitycatalog.tableId"] == found
        assert table.load()["latest-table-version"] == 1

    def test_and_takes_stock_commits_then(self, stock):
        table = own_table(stock, catalog_managed=True)
        table.table_id = table.load()["metadata"]["table-uuid"]
        at = stock.own.get(f"/tables/main.air.{table.name}").json()["latest_timestamp"] + 1
        table.commit(2, inCommitTimestamp=at)

    def test_its_commit_is_the_service_s_own(self, stock):
        table = own_table(stock, catalog_managed=True)
        table.load()
        commits = stock.own.get(f"/tables/main.air.{table.name}/commits").json()["commits"]
        assert [commit["operation"] for commit in commits] == ["SET TBLPROPERTIES", "CREATE TABLE"]
        assert commits[0]["engine_info"].startswith("Tidegate/")

    def test_a_plain_one_is_external_and_takes_none(self, stock):
        table = own_table(stock)
        loaded = table.load()
        assert loaded["metadata"]["table-type"] == "EXTERNAL"
        assert loaded["latest-table-version"] == 0
        (table.log / "_staged_commits").mkdir()
        table.table_id = loaded["metadata"]["table-uuid"]
        refused = table.propose(table.stage(1))
        assert refused.status_code == 400
        assert "is a plain table" in refused.json()["error"]["message"]


class TestUpkeep:
    def test_checkpoint_and_rebuild_take_what_stock_clients_wrote(self, stock, table):
        name = f"/tables/main.air.{table.name}"
        for version in range(1, 4):
            table.commit(version)
        made = stock.own.post(f"{name}/checkpoint", json={})
        assert made.status_code == 200, made.text
        verified = stock.own.get(f"{name}/verify")
        assert verified.json()["differences"] == [], verified.text
        rebuilt = stock.own.post(f"{name}/rebuild")
        assert rebuilt.status_code == 200, rebuilt.text
        assert table.load()["latest-table-version"] == 3
        table.commit(4)


class TestRowTracking:
    """Row ids are the client's to give out, and the service's to check."""

    def tracked(self, stock) -> StockTable:
        table = stock.stage_table()
        more = ["rowTracking", "domainMetadata"]
        protocol = {**PROTOCOL, "writerFeatures": [*PROTOCOL["writerFeatures"], *more]}
        named = {
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-a",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-a",
        }
        info, _, defined = stock.first_lines(table, **named)
        lines = [info, {"protocol": protocol}, defined]
        (table.log / f"{0:020d}.json").write_bytes(content(lines))
        made = stock.create_staged(table, protocol=dashed(protocol))
        assert made.status_code == 200, made.text
        return table

    def mark(self, last: int):
        configuration = json.dumps({"rowIdHighWaterMark": last})
        return {
            "domainMetadata": {
                "domain": "delta.rowTracking",
                "configuration": configuration,
                "removed": False,
            }
        }

    def test_given_in_order_they_are_taken(self, stock):
        table = self.tracked(stock)
        table.commit(1, [add(baseRowId=0, defaultRowCommitVersion=1), self.mark(1)])
        files = [
            add(baseRowId=2, defaultRowCommitVersion=2),
            add(baseRowId=4, defaultRowCommitVersion=2),
        ]
        table.commit(2, [*files, self.mark(5)])

    def test_what_is_said_of_the_mark_may_be_the_winners(self, stock):
        """Delta Spark says so of a commit that is staged again behind one that gave ids out."""
        table = self.tracked(stock)
        table.commit(1, [add(baseRowId=0, defaultRowCommitVersion=1), self.mark(1)])
        lines = [add(baseRowId=2, defaultRowCommitVersion=2), self.mark(3)]
        said = {"delta.rowTracking": {"rowIdHighWaterMark": 1}}
        staged = table.stage(2, lines)
        answer = table.propose(staged, {"action": "set-domain-metadata", "updates": said})
        assert answer.status_code == 200, answer.text

    def test_ours_go_on_counting_from_theirs(self, stock):
        table = self.tracked(stock)
        table.commit(1, [add(baseRowId=0, defaultRowCommitVersion=1), self.mark(1)])
        name = f"/tables/main.air.{table.name}"
        ours = own_line()
        ours["add"]["stats"] = json.dumps({"numRecords": 3})
        landed = stock.own.post(f"{name}/commits", json={"operation": "WRITE", "actions": [ours]})
        assert landed.status_code == 201, landed.text
        lines = stock.own.get(f"{name}/commits/2").text.splitlines()
        found = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
        assert [each["baseRowId"] for each in found] == [2]

    def test_ids_that_are_given_out_are_refused(self, stock):
        table = self.tracked(stock)
        table.commit(1, [add(baseRowId=0, defaultRowCommitVersion=1), self.mark(1)])
        overlap = [
            add(baseRowId=2, defaultRowCommitVersion=2),
            add(baseRowId=3, defaultRowCommitVersion=2),
        ]
        for lines in (
            [add(), self.mark(3)],
            [*overlap, self.mark(5)],
            [add(baseRowId=2, defaultRowCommitVersion=2)],
            [add(baseRowId=2, defaultRowCommitVersion=9), self.mark(3)],
            [self.mark(0)],
        ):
            refused = table.propose(table.stage(2, lines))
            assert refused.status_code == 400, refused.text
        assert table.load()["latest-table-version"] == 1

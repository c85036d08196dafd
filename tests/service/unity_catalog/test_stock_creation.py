"""Tables whose version 0 a stock client writes: a place first, then the table, or nothing."""

import json
import shutil
import uuid

import pytest

from tests.service.unity_catalog.stock import (
    COLUMNS,
    FEATURES,
    PROTOCOL,
    StockClient,
    StockTable,
    add,
    commit_info,
    content,
    dashed,
    metadata,
)


def write_first(table: StockTable, lines) -> None:
    (table.log / f"{0:020d}.json").write_bytes(content(lines))


def names(stock: StockClient) -> set[str]:
    found = stock.own.get("/tables", params={"prefix": "main.air.", "limit": 1000}).json()
    return {table["name"] for table in found["tables"]}


class TestPlaces:
    def test_each_is_of_its_own(self, stock):
        first, second = stock.stage_table("twice"), stock.stage_table("twice")
        assert first.table_id != second.table_id
        assert first.location != second.location

    def test_what_is_asked_for_is_no_column_mapping(self, stock):
        answer = stock.http.post(
            "/delta/v1/catalogs/main/schemas/air/staging-tables", json={"name": "wanted"}
        ).json()
        required = answer["required-protocol"]
        assert set(required["writer-features"]) == set(FEATURES)
        assert answer["required-properties"] == {
            "delta.enableInCommitTimestamps": "true",
            "io.unitycatalog.tableId": answer["table-id"],
        }
        assert "columnMapping" not in json.dumps(answer)
        assert answer["storage-credentials"] == []

    def test_a_taken_name_gets_none(self, stock, table):
        path = "/delta/v1/catalogs/main/schemas/air/staging-tables"
        taken = stock.http.post(path, json={"name": table.name})
        assert (taken.status_code, taken.json()["error"]["type"]) == (409, "AlreadyExistsException")

    @pytest.mark.parametrize("name", ["", "a.b", "a b", "../up"])
    def test_what_is_no_name_gets_none(self, stock, name):
        path = "/delta/v1/catalogs/main/schemas/air/staging-tables"
        assert stock.http.post(path, json={"name": name}).status_code == 400


class TestLostByTheIndex:
    """As where a database was restored from a backup that was made before."""

    @pytest.fixture
    def lost(self, stock, table) -> StockTable:
        table.commit(1)
        kept = stock.own.get(f"/tables/main.air.{table.name}").json()["id"]
        assert stock.own.delete(f"/tables/main.air.{table.name}").is_success
        assert stock.own.delete(f"/forgotten-tables/{kept}").is_success
        return table

    def register(self, table: StockTable, location: str):
        body = {
            "name": f"main.air.{table.name}",
            "location": location,
            "catalog_managed": True,
            "by_marks": True,
        }
        return table.client.own.post("/tables/register", json=body)

    def test_it_is_registered_where_the_service_placed_it(self, lost):
        answer = self.register(lost, lost.location)
        assert answer.status_code == 201, answer.text
        assert lost.load()["metadata"]["table-uuid"] == lost.table_id
        lost.commit(2)

    def test_a_copy_elsewhere_is_not(self, lost):
        elsewhere = f"{lost.location.removesuffix(lost.table_id)}{uuid.uuid4()}"
        shutil.copytree(lost.log, elsewhere.removeprefix("file://") + "/_delta_log")
        answer = self.register(lost, elsewhere)
        assert answer.status_code == 422
        assert "version 0 lies in the log" in answer.json()["detail"]

    def test_nor_one_with_a_version_that_was_not_staged(self, lost):
        for file in (lost.log / "_staged_commits").iterdir():
            file.unlink()
        answer = self.register(lost, lost.location)
        assert answer.status_code == 422
        assert "no staged commit has its bytes" in answer.json()["detail"]


class TestCreating:
    def test_the_table_is_there_by_both_apis(self, stock):
        table = stock.create()
        loaded = table.load()
        assert loaded["metadata"]["table-uuid"] == table.table_id
        assert loaded["metadata"]["location"] == table.location
        assert loaded["metadata"]["columns"] == COLUMNS
        assert (loaded["commits"], loaded["latest-table-version"]) == ([], 0)
        own = stock.own.get(f"/tables/main.air.{table.name}").json()
        assert (own["catalog_managed"], own["latest_version"]) == (True, 0)
        assert own["published_version"] == 0

    def test_with_rows_and_their_checksum(self, stock):
        table = stock.stage_table()
        lines = [*stock.first_lines(table), add()]
        write_first(table, lines)
        (table.log / f"{0:020d}.crc").write_text("{}")
        assert stock.create_staged(table).status_code == 200
        assert stock.own.get(f"/tables/main.air.{table.name}").json()["num_files"] == 1

    @pytest.mark.parametrize(("said", "status"), [("x", 200), ("id", 400)])
    def test_with_a_clustering_that_the_log_names(self, stock, said, status):
        """Delta Spark writes a domain's name into its configuration, and does not say it."""
        table = stock.stage_table()
        more = ["clustering", "domainMetadata"]
        protocol = {**PROTOCOL, "writerFeatures": [*PROTOCOL["writerFeatures"], *more]}
        info, _, defined = stock.first_lines(table)
        written = {"clusteringColumns": [["x"]], "domainName": "delta.clustering"}
        domain = {"domain": "delta.clustering", "configuration": json.dumps(written)}
        lines = [
            info,
            {"protocol": protocol},
            defined,
            {"domainMetadata": {**domain, "removed": False}},
        ]
        write_first(table, lines)
        made = stock.create_staged(
            table,
            protocol=dashed(protocol),
            **{"domain-metadata": {"delta.clustering": {"clusteringColumns": [[said]]}}},
        )
        assert made.status_code == status, made.text

    def test_the_same_request_again_finds_it(self, stock, table):
        again = stock.create_staged(table)
        assert again.status_code == 200
        assert again.json()["metadata"]["table-uuid"] == table.table_id

    def test_of_two_for_one_name_one_is_made(self, stock):
        first, second = stock.stage_table("rivals"), stock.stage_table("rivals")
        for table in (first, second):
            write_first(table, stock.first_lines(table))
        assert stock.create_staged(first).status_code == 200
        lost = stock.create_staged(second)
        assert (lost.status_code, lost.json()["error"]["type"]) == (409, "AlreadyExistsException")

    def test_a_dropped_name_is_free_again(self, stock):
        table = stock.create()
        name = f"main.air.{table.name}"
        assert stock.http.get(f"/tables/{name}").status_code == 200
        assert stock.http.delete(f"/tables/{name}").status_code == 200
        assert stock.http.get(table.path).status_code == 404
        again = stock.create(table.name)
        assert again.table_id != table.table_id
        assert table.propose(table.stage(1)).status_code == 409


class TestBadInput:
    @pytest.mark.parametrize(
        ("lines", "why"),
        [
            (lambda table: None, "there is no 00000000000000000000.json"),
            (lambda table: [{"protocol": PROTOCOL}], "begin with its commitInfo"),
            (
                lambda table: [commit_info(0), {"protocol": PROTOCOL}],
                "has a protocol and a metaData action",
            ),
            (
                lambda table: [commit_info(0), {"protocol": PROTOCOL}, metadata("another")],
                "io.unitycatalog.tableId",
            ),
            (
                lambda table: [
                    commit_info(0),
                    {"protocol": {**PROTOCOL, "readerFeatures": [], "writerFeatures": []}},
                    metadata(table.table_id),
                ],
                "the protocol is not that of the commit",
            ),
            (
                lambda table: [
                    commit_info(1),
                    {"protocol": PROTOCOL},
                    metadata(table.table_id),
                ],
                "as was said of it",
            ),
        ],
        ids=["missing", "no commitInfo", "no metadata", "another id", "protocol", "time"],
    )
    def test_a_first_version_that_is_none_makes_no_table(self, stock, lines, why):
        table = stock.stage_table()
        found = lines(table)
        if found is not None:
            write_first(table, found)
        refused = stock.create_staged(table)
        assert refused.status_code == 400, refused.text
        assert why in refused.json()["error"]["message"]
        assert f"main.air.{table.name}" not in names(stock)

    def test_a_table_without_the_features_is_none_of_these(self, stock):
        table = stock.stage_table()
        lesser = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": [],
            "writerFeatures": ["inCommitTimestamp"],
        }
        lines = [commit_info(0), {"protocol": lesser}, metadata(table.table_id)]
        write_first(table, lines)
        refused = stock.create_staged(table, protocol=dashed(lesser))
        assert refused.status_code == 400
        assert "lacks the table features" in refused.json()["error"]["message"]

    @pytest.mark.parametrize(
        "location", ["file:///elsewhere", "file:///x/../y", "", "s3://other/place"]
    )
    def test_another_place_than_was_given_is_refused(self, stock, location):
        table = stock.stage_table()
        write_first(table, stock.first_lines(table))
        assert stock.create_staged(table, location=location).status_code == 400

    def test_another_table_s_place_is_refused(self, stock, table):
        thief = stock.stage_table()
        refused = stock.create_staged(thief, location=table.location)
        assert refused.status_code == 400

    def test_a_log_with_more_than_its_first_version_is_refused(self, stock):
        table = stock.stage_table()
        write_first(table, stock.first_lines(table))
        (table.log / f"{1:020d}.json").write_bytes(content([commit_info(1), add()]))
        assert stock.create_staged(table).status_code == 409
        assert f"main.air.{table.name}" not in names(stock)

    def test_a_log_with_more_files_than_are_listed_is_refused(self, start_service):
        stock = StockClient(start_service(max_log_files=1000).url)
        with stock.http, stock.own:
            table = stock.stage_table()
            write_first(table, stock.first_lines(table))
            for number in range(1000):
                (table.log / f"{number}.crc").touch()
            refused = stock.create_staged(table)
            assert refused.status_code == 400
            assert "max_log_files" in refused.json()["error"]["message"]
            assert f"main.air.{table.name}" not in names(stock)

    def test_an_external_one_is_registered_otherwise(self, stock):
        table = stock.stage_table()
        refused = stock.create_staged(table, **{"table-type": "EXTERNAL"})
        assert refused.status_code == 400
        assert "expected the table-type MANAGED" in refused.json()["error"]["message"]

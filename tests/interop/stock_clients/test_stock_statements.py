"""Each statement that stock Delta Spark has for catalog-managed tables, through the service:
what it answers, and that the published log and the index are one after it."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.processes.foreign_spark import ForeignSpark
from tests.interop.stock_clients.catalog_session import catalog_session
from tests.interop.tables import check_replay
from tidegate import Lake

MANAGED = "USING delta{0} TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported'{1})"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def session(shared_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignSpark]:
    with catalog_session(tmp_path_factory.mktemp("stock"), shared_server) as session:
        yield session


@pytest.fixture
def name() -> str:
    return f"main.stock.t{next(_numbers)}"


def create(session: ForeignSpark, name: str, columns: str, more: str = "", **properties: str):
    said = "".join(f", '{key}' = '{value}'" for key, value in properties.items())
    session.run(f"CREATE TABLE {name} ({columns}) " + MANAGED.format(more, said))


def rows(session: ForeignSpark, name: str) -> list[tuple]:
    return sorted(session.run(f"SELECT * FROM {name}"))


def operations(lake: Lake, name: str) -> list[str]:
    """Of the table's versions, the first one first."""
    return [commit.operation for commit in lake.table(name).history()][::-1]


class TestRows:
    def test_insert_update_delete_merge_and_restore(self, session, lake, name):
        create(session, name, "id BIGINT, x INT")
        session.run(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
        session.run(f"INSERT INTO {name} VALUES (3, 3)")
        assert session.run(f"UPDATE {name} SET x = 20 WHERE id = 2") == [(1,)]
        assert session.run(f"DELETE FROM {name} WHERE id = 1") == [(1,)]
        assert session.run(
            f"MERGE INTO {name} t USING (SELECT * FROM VALUES (3L, 33), (4L, 4) AS v(id, x)) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ) == [(2, 1, 0, 1)]
        assert rows(session, name) == [(2, 20), (3, 33), (4, 4)]
        assert session.run(f"SELECT count(*) FROM {name} VERSION AS OF 2") == [(3,)]
        session.run(f"RESTORE TABLE {name} TO VERSION AS OF 2")
        assert rows(session, name) == [(1, 1), (2, 2), (3, 3)]
        session.run(f"TRUNCATE TABLE {name}")
        assert rows(session, name) == []
        assert operations(lake, name) == [
            *("CREATE TABLE", "WRITE", "WRITE", "UPDATE", "DELETE", "MERGE", "RESTORE"),
            "TRUNCATE",
        ]
        check_replay(lake.table(name))

    def test_partitions_are_overwritten_and_replaced(self, session, lake, name):
        create(session, name, "id BIGINT, d STRING", " PARTITIONED BY (d)")
        session.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
        assert session.run(f"SELECT * FROM {name} WHERE d = 'b'") == [(2, "b")]
        session.run(f"INSERT INTO {name} REPLACE WHERE d = 'b' VALUES (3, 'b')")
        assert rows(session, name) == [(1, "a"), (3, "b")]
        session.run(f"INSERT OVERWRITE {name} VALUES (9, 'z')")
        assert rows(session, name) == [(9, "z")]
        check_replay(lake.table(name))

    def test_change_data_is_told(self, session, name):
        create(session, name, "id BIGINT", **{"delta.enableChangeDataFeed": "true"})
        session.run(f"INSERT INTO {name} VALUES (1), (2)")
        session.run(f"UPDATE {name} SET id = 3 WHERE id = 1")
        changes = session.run(
            f"SELECT id, _change_type, _commit_version FROM table_changes('{name}', 1)"
        )
        assert sorted(changes) == [
            *((1, "insert", 1), (1, "update_preimage", 2)),
            *((2, "insert", 1), (3, "update_postimage", 2)),
        ]


class TestDefinitions:
    def test_a_table_is_made_of_a_query_and_replaced(self, session, lake, name):
        session.run(f"CREATE TABLE {name} {MANAGED.format('', '')} AS SELECT id FROM range(10)")
        assert rows(session, name) == [(n,) for n in range(10)]
        session.run(
            f"CREATE OR REPLACE TABLE {name} {MANAGED.format('', '')} AS SELECT 'a' AS word"
        )
        assert rows(session, name) == [("a",)]
        session.run(f"REPLACE TABLE {name} (b STRING) {MANAGED.format('', '')}")
        assert rows(session, name) == []
        assert operations(lake, name) == [
            *("CREATE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE")
        ]
        check_replay(lake.table(name))

    def test_columns_properties_and_comments_change(self, session, lake, name):
        create(session, name, "id BIGINT, x INT")
        session.run(f"ALTER TABLE {name} ADD COLUMN y STRING")
        session.run(f"ALTER TABLE {name} ALTER COLUMN id COMMENT 'the key'")
        session.run(f"ALTER TABLE {name} SET TBLPROPERTIES ('a.b' = 'c')")
        assert ("a.b", "c") in session.run(f"SHOW TBLPROPERTIES {name}")
        session.run(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('a.b')")
        session.run(f"COMMENT ON TABLE {name} IS 'flights'")
        session.run(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        session.run(f"ALTER TABLE {name} ALTER COLUMN x TYPE BIGINT")
        session.run(f"INSERT INTO {name} VALUES (1, 5000000000, 'a')")
        assert rows(session, name) == [(1, 5_000_000_000, "a")]
        assert session.run(f"DESCRIBE TABLE {name}")[:3] == [
            *(("id", "bigint", "the key"), ("x", "bigint", None), ("y", "string", None))
        ]
        assert "a.b" not in dict(session.run(f"SHOW TBLPROPERTIES {name}"))
        assert operations(lake, name)[-1] == "WRITE"

    def test_clustering_is_chosen_changed_and_dropped(self, session, lake, name):
        create(session, name, "id BIGINT, d STRING", " CLUSTER BY (d)")
        session.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
        session.run(f"ALTER TABLE {name} CLUSTER BY (id)")
        session.run(f"INSERT INTO {name} VALUES (3, 'a')")
        session.run(f"ALTER TABLE {name} CLUSTER BY NONE")
        assert rows(session, name) == [(1, "a"), (2, "b"), (3, "a")]
        assert operations(lake, name)[2::2] == ["CLUSTER BY", "CLUSTER BY"]

    def test_rules_for_rows_are_kept(self, session, name):
        create(
            session,
            name,
            "id BIGINT, d DATE, y INT GENERATED ALWAYS AS (year(d)), "
            "i BIGINT GENERATED ALWAYS AS IDENTITY, s STRING DEFAULT 'none'",
            **{"delta.feature.allowColumnDefaults": "supported"},
        )
        session.run(f"INSERT INTO {name} (id, d) VALUES (1, DATE'2024-02-03')")
        session.run(f"INSERT INTO {name} (id, d) VALUES (2, DATE'2025-02-03')")
        found = session.run(f"SELECT id, y, i, s FROM {name} ORDER BY id")
        assert found == [(1, 2024, 1, "none"), (2, 2025, 2, "none")]
        session.run(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (id > 0)")
        with pytest.raises(AssertionError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
            session.run(f"INSERT INTO {name} (id, d) VALUES (-1, DATE'2024-02-03')")

    def test_columns_of_every_type_are_told(self, session, name):
        types = [
            *("tinyint", "smallint", "float", "double", "decimal(10,2)", "binary", "boolean"),
            *("timestamp", "timestamp_ntz", "array<struct<x:int>>", "map<string,int>", "date"),
            "variant",
        ]
        create(session, name, ", ".join(f"c{n} {kind}" for n, kind in enumerate(types)))
        session.run(
            f"INSERT INTO {name} VALUES (1, 2, 3, 4, 5.5, X'00', true, TIMESTAMP'2024-01-01', "
            "TIMESTAMP_NTZ'2024-01-01 00:00:00', array(named_struct('x', 1)), map('a', 1), "
            "DATE'2024-01-01', parse_json('1'))"
        )
        found = session.run(f"SELECT c4, c9[0].x, c10['a'], c12::int FROM {name}")
        assert found == [("5.50", 1, 1, 1)]
        told = session.run(f"DESCRIBE TABLE {name}")[: len(types)]
        assert [kind for _, kind, _ in told] == types


class TestListing:
    def test_a_table_is_listed_until_it_is_dropped(self, session, lake, name):
        create(session, name, "id BIGINT")
        catalog, schema, table = name.split(".")
        assert (schema, table, False) in session.run(f"SHOW TABLES IN {catalog}.{schema}")
        assert (schema,) in session.run(f"SHOW SCHEMAS IN {catalog}")
        session.run(f"DROP TABLE {name}")
        assert (schema, table, False) not in session.run(f"SHOW TABLES IN {catalog}.{schema}")
        with pytest.raises(AssertionError, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.run(f"SELECT * FROM {name}")

    def test_what_exists_is_not_created_again(self, session, name):
        create(session, name, "id BIGINT")
        with pytest.raises(AssertionError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
            create(session, name, "id BIGINT")
        session.run(f"CREATE TABLE IF NOT EXISTS {name} (x INT) {MANAGED.format('', '')}")
        assert session.run(f"DESCRIBE TABLE {name}")[0][0] == "id"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("OPTIMIZE {name}", "OPTIMIZE is blocked"),
        ("VACUUM {name}", "VACUUM is blocked"),
        ("REORG TABLE {name} APPLY (PURGE)", "OPTIMIZE is blocked"),
        ("ALTER TABLE {name} RENAME COLUMN x TO z", "RENAME COLUMN is not supported"),
        ("ALTER TABLE {name} DROP COLUMN x", "DELTA_UNSUPPORTED_DROP_COLUMN"),
        ("ALTER TABLE {name} RENAME TO main.stock.other", "not supported"),
    ],
)
def test_what_the_client_itself_refuses_does_no_harm(session, lake, name, statement, told):
    create(session, name, "id BIGINT, x INT")
    with pytest.raises(AssertionError, match=told):
        session.run(statement.format(name=name))
    assert lake.table(name).version == 0


def test_a_stream_is_written_once_whenever_it_is_started_again(session, lake, name, tmp_path: Path):
    create(session, name, "value BIGINT")
    folder = tmp_path / "files"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.json").write_text(f'{{"value": {n}}}\n')
        session.stream(folder, "value BIGINT", tmp_path / "checkpoint", name)
    session.stream(folder, "value BIGINT", tmp_path / "checkpoint", name)
    assert rows(session, name) == [(0,), (1,), (2,)]
    assert operations(lake, name)[1:] == ["STREAMING UPDATE"] * 3
    check_replay(lake.table(name))

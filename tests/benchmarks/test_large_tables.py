"""Tables that benches make in bulk are what the service would have made."""

import pytest

from benchmarks.load.asking import Connection, p50s, version_of
from benchmarks.rig import large_tables
from benchmarks.rig.large_tables import add_line, commits_url, file_path, partition
from benchmarks.rig.world import scratch, standing
from tidegate_protocol.log.codec import decode

FILES, COMMITS, VERSIONS = 12, 3, 12


@pytest.fixture(scope="module")
def service():
    with scratch(None) as folder, standing(folder) as world:
        yield world.service


@pytest.fixture(params=[True, False], ids=["catalog-managed", "plain"])
def table(request, service):
    table = service.create_table(catalog_managed=request.param, partition_columns=("p",))
    large_tables.grow_files(service, table, files=FILES, commits=COMMITS, name="f")
    large_tables.grow_versions(service, table, through=VERSIONS, name="v")
    return table


def test_index_and_log_say_the_same(service, table):
    assert service.head(table) == (VERSIONS, VERSIONS)
    large_tables.check(service, table)
    head = service.http.get(f"{service.api}/tables/{table.name}").json()
    assert head["num_files"] == FILES + VERSIONS - COMMITS


def test_a_difference_would_be_seen(service, table):
    log = large_tables.log_folder(table)
    (log / f"{VERSIONS:020}.json").write_bytes((log / f"{VERSIONS - 1:020}.json").read_bytes())
    with pytest.raises(RuntimeError, match="is not what its log says"):
        large_tables.check(service, table)


def test_a_retry_of_what_was_made_in_bulk_gets_its_version(service, table):
    proposal = b'{"operation":"WRITE","transaction_id":"v-%d","actions":[%s]}'
    body = proposal % (VERSIONS - 1, add_line("v", VERSIONS - 1))
    with Connection(service) as connection:
        asked = connection.post(commits_url(table), body, expected=200)
    assert version_of(asked) == VERSIONS


def test_the_service_goes_on_from_there(service, table):
    large_tables.grow_files(service, table, files=1, commits=1, name="further")
    assert service.head(table)[0] == VERSIONS + 1


def test_a_line_is_an_add_of_its_partition():
    add = decode(add_line("x", 1234))
    assert (add.path, add.partition_values) == (file_path("x", 1234), {"p": partition(1234)})


def test_a_turn_asks_each_once_in_an_order_of_its_own():
    asked = []

    def asker(name, seconds):
        def ask():
            asked.append(name)
            return seconds

        return ask

    askers = [asker("a", 1.0), asker("b", 2.0)]
    assert p50s(askers, turns=20, seed=4) == [1.0, 2.0]
    turns = {tuple(asked[start : start + 2]) for start in range(0, 40, 2)}
    assert turns == {("a", "b"), ("b", "a")}

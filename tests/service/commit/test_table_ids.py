"""What an instance remembers of which table a reference means."""

import uuid

from tidegate_service.core.instance.table_cache import TableCache
from tidegate_service.core.ports.records import TableRecord, TableState


def table(name: str = "main.air.flights", **fields: object) -> TableRecord:
    values = {
        "id": str(uuid.uuid4()),
        "name": name,
        "location": f"file:///w/{name}",
        "catalog_managed": True,
        "state": TableState.ACTIVE,
        "state_reason": None,
        "quarantine_cause": None,
        "latest_version": 3,
        "published_version": 3,
        "latest_timestamp": 1,
        "protocol": None,
        "metadata": None,
        "num_files": 0,
        "size_bytes": 0,
        "first_version": 0,
        "epoch": 0,
        **fields,
    }
    return TableRecord(**values)


class TestKnown:
    def test_a_name_in_any_case_and_an_id_mean_the_table(self):
        ids, flights = TableCache(), table("main.air.Flights")
        learnt = ids.learn(flights)
        assert (learnt.id, learnt.name, learnt.location, learnt.catalog_managed) == (
            flights.id,
            "main.air.Flights",
            flights.location,
            True,
        )
        for ref in ("main.air.Flights", "MAIN.air.flights", flights.id, flights.id.upper()):
            assert ids.known(ref) is learnt

    def test_what_was_not_learnt_is_not_known(self):
        ids = TableCache()
        ids.learn(table())
        for ref in ("main.air.other", str(uuid.uuid4()), "", "main.air.flight", "main.air"):
            assert ids.known(ref) is None

    def test_case_is_that_of_ascii(self):
        """The index has no table of the name with a Kelvin sign, which lower-cases to a k."""
        ids = TableCache()
        ids.learn(table("main.air.k"))
        assert ids.known("main.air.K") is not None
        assert ids.known("main.air.\u212a") is None


class TestForget:
    def test_by_name_or_id_it_takes_both(self):
        for ref_of in (lambda t: t.name, lambda t: t.id, lambda t: t.name.upper()):
            ids, flights = TableCache(), table()
            ids.learn(flights)
            ids.forget(ref_of(flights))
            assert ids.known(flights.name) is None
            assert ids.known(flights.id) is None

    def test_what_is_not_known_is_nothing_to_forget(self):
        ids, flights = TableCache(), table()
        learnt = ids.learn(flights)
        ids.forget("main.air.other")
        assert ids.known(flights.name) is learnt

    def test_another_table_of_the_name_takes_its_place_whole(self):
        ids, old, new = TableCache(), table(), table("MAIN.air.flights")
        ids.learn(old)
        learnt = ids.learn(new)
        assert ids.known("main.air.flights") is learnt
        assert ids.known(old.id) is None
        ids.forget(old.id)
        assert ids.known(new.id) is learnt


class TestBound:
    def test_the_one_learnt_first_makes_room(self):
        ids = TableCache(capacity=2)
        tables = [table(f"main.air.t{number}") for number in range(4)]
        for one in tables:
            ids.learn(one)
        for gone in tables[:2]:
            assert ids.known(gone.name) is None
            assert ids.known(gone.id) is None
        for kept in tables[2:]:
            assert ids.known(kept.name) == ids.known(kept.id)
            assert ids.known(kept.id) is not None

    def test_a_table_learnt_again_takes_no_more_room(self):
        ids, first, second = TableCache(capacity=2), table("main.air.a"), table("main.air.b")
        ids.learn(first)
        for _ in range(5):
            ids.learn(second)
        assert ids.known(first.id) is not None
        assert ids.known(second.id) is not None

"""Places and files of one scope, and what admins of another can do there, over HTTP."""

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders.by_x import add
from tests.builders.flights import proposal, table_body
from tests.servers.postgres import cloned
from tests.service.catalog_managed.guarded import Guarded, make_token
from tests.service.serving import running
from tests.service.tables.delta_logs import DeltaLog, line
from tests.service.tables.registering.test_register_paths import vector_at
from tidegate_service.core.access.roles import Grant, Role
from tidegate_service.settings import Settings

OURS = "main.ours"
THEIRS = "main.theirs"


@dataclass(frozen=True, slots=True)
class Shared:
    """A service of several scopes. Its operator allows any admin the folder `lake`, which the
    warehouse is in, and one folder of the warehouse."""

    guarded: Guarded
    lake: Path

    @property
    def warehouse(self) -> Path:
        return self.lake / "warehouse"

    def admin(self, *scopes: str) -> httpx.Client:
        return self.guarded.client(self.guarded.token("admin", *scopes))

    def url(self, place: str) -> str:
        """Of a place written with `{warehouse}` or `{lake}`."""
        return f"file://{place.format(warehouse=self.warehouse, lake=self.lake)}"


@pytest.fixture(scope="module")
def shared(postgres_server, migrated_template, tmp_path_factory) -> Iterator[Shared]:
    lake = tmp_path_factory.mktemp("tenants") / "lake"
    (lake / "warehouse" / "open").mkdir(parents=True)
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path_factory.mktemp("data"),
            warehouse=(lake / "warehouse").as_uri(),
            allowed_locations=(lake.as_uri(), (lake / "warehouse" / "open").as_uri()),
            port=0,
            auth="tokens",
        )
        with running(settings) as service:
            yield Shared(Guarded(service.url, url), lake)


@pytest.fixture
def name() -> str:
    """A table's, or a folder's."""
    return f"t{uuid.uuid4().hex}"


def create(client: httpx.Client, name: str, **fields: Any) -> httpx.Response:
    return client.post("/tables", json=table_body(name, **fields))


def register(client: httpx.Client, name: str, location: str) -> httpx.Response:
    return client.post("/tables/register", json={"name": name, "location": location})


def outcome(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json().get("code")


class TestFolders:
    @pytest.mark.parametrize(
        "place",
        [
            "{warehouse}/main/theirs/new",
            "{warehouse}/main/theirs/new/inside",
            "{warehouse}/Main/THEIRS/new",
            "{warehouse}/main/theirs",
            "{warehouse}/main",
            "{warehouse}/other",
            "{warehouse}/other/ours/t",
            "{warehouse}/main/no name/t",
            "{warehouse}/no name/t",
            # Where a file system folds cases, or passes over what has no shape.
            "{warehouse}/main/the\ufe0firs/t",
            "{lake}/Warehouse/main/theirs/new",
            "{lake}/warehouse",
            "{lake}/WAREHOUSE",
        ],
    )
    def test_those_of_other_scopes_are_refused(self, shared, name, place):
        location = shared.url(place)
        with shared.admin(OURS) as client:
            for answer in (
                create(client, f"{OURS}.{name}", location=location),
                register(client, f"{OURS}.{name}", location),
            ):
                assert outcome(answer) == (403, "forbidden")
        folder = Path(location.removeprefix("file://"))
        assert not (folder / "_delta_log").exists()

    def test_a_default_place_stays_free_for_its_scope(self, shared, name):
        place = shared.url(f"{{warehouse}}/main/theirs/{name}")
        with shared.admin(OURS) as client:
            create(client, f"{OURS}.{name}", location=place)
            create(client, f"{OURS}.{name}", location=shared.url("{warehouse}/main/theirs"))
        with shared.guarded.client(shared.guarded.token("writer", THEIRS)) as client:
            created = create(client, f"{THEIRS}.{name}")
        assert created.status_code == 201
        assert created.json()["location"] == place

    @pytest.mark.parametrize(
        ("scope", "place"),
        [
            (OURS, "{warehouse}/main/ours/{name}/else"),
            (OURS, "{warehouse}/main/ours/{name}x"),
            (OURS, "{warehouse}/main/ours/a {name}"),
            ("main", "{warehouse}/main/theirs/{name}"),
            ("main", "{warehouse}/main/a {name}"),
            ("main", "{warehouse}/main/theirs{name}"),
            ("*", "{warehouse}/catalog{name}"),
            ("*", "{warehouse}/a {name}/t"),
            (OURS, "{lake}/{name}"),
            (OURS, "{warehouse}/open/{name}"),
        ],
    )
    def test_those_of_one_s_own_are_taken(self, shared, name, scope, place):
        location = f"file://{place.format(warehouse=shared.warehouse, lake=shared.lake, name=name)}"
        with shared.admin(scope) as client:
            assert create(client, f"{OURS}.{name}", location=location).status_code == 201

    def test_the_answer_is_the_same_whether_a_table_is_there(self, shared, name):
        with shared.admin(THEIRS) as client:
            location = create(client, f"{THEIRS}.{name}").json()["location"]
        with shared.guarded.client(shared.guarded.token("admin", OURS)) as client:
            there = register(client, f"{OURS}.{name}", location).json()
            nothing = register(client, f"{OURS}.{name}", f"{location[:-1]}_").json()
        assert there["code"] == nothing["code"] == "forbidden"
        assert there["detail"] == nothing["detail"].replace(f"{name[:-1]}_", name)

    def test_a_location_in_use_does_not_say_by_whom(self, shared, name):
        location = shared.url(f"{{lake}}/{name}")
        with shared.admin(THEIRS) as client:
            answer = create(client, f"{THEIRS}.x{name}", location=location)
            assert answer.status_code == 201
        with shared.admin(OURS) as client:
            answer = create(client, f"{OURS}.{name}", location=f"{location}/inside")
        assert outcome(answer) == (409, "table-exists")
        assert THEIRS not in answer.text
        assert f"x{name}" not in answer.text

    def test_a_table_that_was_put_there_before_is_found_by_its_admin(self, shared, name):
        location = shared.url(f"{{warehouse}}/main/theirs/{name}")
        with shared.admin("*") as client:
            assert create(client, f"{OURS}.{name}", location=location).status_code == 201
        with shared.admin(OURS) as client:
            assert register(client, f"{OURS}.{name}", location).status_code == 200

    def test_local_folders_that_differ_in_case_are_one(self, shared, name):
        with shared.admin(OURS) as client:
            location = shared.url(f"{{lake}}/{name}")
            assert create(client, f"{OURS}.{name}", location=location).status_code == 201
            for place in (name.upper(), f"{name.upper()}/inside"):
                answer = create(client, f"{OURS}.{name}x", location=shared.url(f"{{lake}}/{place}"))
                assert outcome(answer) == (409, "table-exists")


class TestForgottenTables:
    @pytest.fixture
    def place(self, shared, name) -> str:
        """Of a table of theirs that was forgotten, where any admin may put tables."""
        location = shared.url(f"{{lake}}/{name}/table")
        with shared.admin(THEIRS) as client:
            assert create(client, f"{THEIRS}.{name}", location=location).status_code == 201
            assert client.delete(f"/tables/{THEIRS}.{name}").status_code == 204
        return location

    def test_no_other_scope_registers_one(self, shared, name, place):
        with shared.admin(OURS) as client:
            refused = register(client, f"{OURS}.{name}", place)
            # As of a table that is there.
            other = shared.url(f"{{lake}}/{name}/other")
            assert create(client, f"{OURS}.{name}x", location=other).status_code == 201
            in_use = register(client, f"{OURS}.{name}", f"{other}/in").json()
        assert outcome(refused) == (409, "table-exists")
        assert refused.json()["detail"] == in_use["detail"].replace(f"{other}/in", place)
        assert refused.json()["hint"] == in_use["hint"]
        with shared.admin(THEIRS) as client:
            assert register(client, f"{THEIRS}.{name}", place).status_code == 201

    @pytest.mark.parametrize("scope", ["main", "*", f"{OURS} {THEIRS}"])
    def test_who_administers_both_does(self, shared, name, place, scope):
        with shared.admin(*scope.split()) as client:
            assert register(client, f"{OURS}.{name}", place).status_code == 201

    @pytest.mark.parametrize("where", ["", "/..", "/inside", "upper"])
    def test_nor_creates_a_table_there(self, shared, name, place, where):
        folder = Path(place.removeprefix("file://"))
        shutil.rmtree(folder / "_delta_log")
        other = {"/..": folder.parent, "upper": folder.parent / "TABLE"}.get(
            where, Path(f"{folder}{where}")
        )
        with shared.admin(OURS) as client:
            answer = create(client, f"{OURS}.{name}", location=other.as_uri())
            assert outcome(answer) == (409, "table-exists")
        with shared.admin(THEIRS) as client:
            answer = create(client, f"{THEIRS}.{name}", location=other.as_uri())
            assert answer.status_code == 201

    def test_it_is_anybody_s_once_nothing_is_kept(self, shared, name, place):
        with shared.admin("*") as client:
            kept = client.get("/forgotten-tables", params={"limit": 1000}).json()
            (found,) = [t["id"] for t in kept["tables"] if t["location"] == place]
            assert client.delete(f"/forgotten-tables/{found}").status_code == 204
        with shared.admin(OURS) as client:
            assert register(client, f"{OURS}.{name}", place).status_code == 201

    def test_a_default_place_is_its_scope_s_whoever_was_there(self, shared, name):
        place = shared.url(f"{{warehouse}}/main/ours/{name}")
        with shared.admin("*") as client:
            assert create(client, f"{THEIRS}.{name}", location=place).status_code == 201
            assert client.delete(f"/tables/{THEIRS}.{name}").status_code == 204
        shutil.rmtree(place.removeprefix("file://"))
        with shared.guarded.client(shared.guarded.token("writer", OURS)) as client:
            assert create(client, f"{OURS}.{name}").json()["location"] == place


class TestFiles:
    """What the log of a table of ours names of theirs."""

    THEIR_FILES = (
        "{warehouse}/main/theirs/t/a.parquet",
        "file:{warehouse}/main/theirs/t/a.parquet",
        "{warehouse}//main/./theirs/t/a.parquet",
        "{warehouse}/MAIN/Theirs/t/x=1/a.parquet",
        "{warehouse}/main/theirs/a.parquet",
        "{lake}/./warehouse/main/theirs/t/a.parquet",
        "{lake}/Warehouse/main/theirs/t/a.parquet",
        "{warehouse}/main/%74heirs/t/a.parquet",
    )

    def path(self, shared, path: str) -> str:
        return path.format(warehouse=shared.warehouse, lake=shared.lake)

    def log(self, shared, name) -> DeltaLog:
        return DeltaLog(shared.warehouse / "main" / "ours" / name)

    @pytest.mark.parametrize("path", THEIR_FILES)
    @pytest.mark.parametrize("file", [add, vector_at], ids=["data", "deletion vector"])
    def test_who_may_not_read_them_registers_no_table_with_them(self, shared, name, path, file):
        log = self.log(shared, name)
        log.first(file(self.path(shared, path)))
        with shared.admin(OURS) as client:
            assert outcome(register(client, f"{OURS}.{name}", log.location)) == (
                422,
                "invalid-path",
            )
        both = make_token(
            shared.guarded.database_url, Grant(Role.ADMIN, OURS), Grant(Role.READER, THEIRS)
        )
        with shared.guarded.client(both) as client:
            assert register(client, f"{OURS}.{name}", log.location).status_code == 201

    @pytest.mark.parametrize(
        "path",
        [
            "{lake}/clones/a.parquet",
            "{warehouse}/open/a.parquet",
            "{warehouse}/main/ours/source/a.parquet",
        ],
    )
    def test_those_of_one_s_own_and_of_allowed_places_are_named(self, shared, name, path):
        log = self.log(shared, name)
        log.first(add(self.path(shared, path)))
        with shared.admin(OURS) as client:
            assert register(client, f"{OURS}.{name}", log.location).status_code == 201
            assert client.post(f"/tables/{OURS}.{name}/scan", json={}).status_code == 200

    def test_a_commit_of_another_writer_shows_them_to_their_readers_alone(self, shared, name):
        log = self.log(shared, name)
        log.first(add("x=1/mine.parquet"))
        with shared.admin(OURS) as client:
            assert register(client, f"{OURS}.{name}", log.location).status_code == 201
            log.commit(1, add(self.path(shared, self.THEIR_FILES[0])))
            table = f"/tables/{OURS}.{name}"
            more = line(add("x=1/more.parquet"))
            assert client.post(f"{table}/commits", json=proposal(more)).json()["version"] == 2
            assert outcome(client.post(f"{table}/scan", json={})) == (422, "invalid-path")
            # Nor does it keep the index from being made anew.
            rebuilt = client.post(f"{table}/rebuild")
            assert (rebuilt.status_code, rebuilt.json()["latest_version"]) == (200, 2)
            assert outcome(client.post(f"{table}/scan", json={})) == (422, "invalid-path")
            assert client.post(f"{table}/scan", json={"version": 0}).status_code == 200
        for scopes in [("main",), ("*",), (OURS, THEIRS)]:
            token = shared.guarded.token("reader", *scopes)
            with shared.guarded.client(token) as client:
                assert client.post(f"{table}/scan", json={}).status_code == 200

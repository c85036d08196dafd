"""What every implementation of `core.ports.store.data_files.DataFiles` does, whatever the store."""

import pytest

from tidegate_protocol.log.paths import LOG_FOLDER

DATA = ["a/b", "a-b", "part-0.parquet", "x=1/part-1.parquet", "x=1/ü %.parquet", "_y=2/part-2"]
KEPT_BACK = [
    f"{LOG_FOLDER}/00000000000000000000.json",
    f"{LOG_FOLDER}/_sidecars/s.parquet",
    "_hidden/part-3.parquet",
    "x=1/.part-1.parquet.crc",
    ".hidden",
    "_SUCCESS",
]
CHANGES = "_change_data/x=1/cdc-0.parquet"


class DataFilesContract:
    """`storage` and `location` are those of a table; `plant` writes a file below it."""

    @pytest.fixture
    def files(self, storage, location):
        return storage.data_files(location, partition_columns={"x", "_y"})

    async def test_it_lists_data_files_in_byte_order_and_nothing_else(self, files, plant):
        for path in [*DATA, *KEPT_BACK, CHANGES]:
            plant(path, b"12345")
        listed = [path async for batch in files.listed() for path in batch.paths]
        assert listed == sorted([*DATA, CHANGES], key=str.encode)

    async def test_a_range_is_a_part_of_it(self, files, plant):
        for path in DATA:
            plant(path, b"12345")
        whole = sorted(DATA, key=str.encode)
        some = files.listed(after=whole[1], until=whole[3])
        assert [path async for batch in some for path in batch.paths] == whole[2:4]
        rest = files.listed(after=whole[3])
        assert [path async for batch in rest for path in batch.paths] == whole[4:]

    async def test_a_folder_that_is_missing_is_empty(self, files):
        assert [batch async for batch in files.listed() if batch.paths] == []

    async def test_a_listing_of_many_keeps_its_order(self, files, plant):
        names = [f"p={n % 7}/{n}" for n in range(2_500)]
        for name in names:
            plant(name, b"1")
        listed = [path async for batch in files.listed() for path in batch.paths]
        assert listed == sorted(names)

    async def test_it_says_how_large_and_old_files_are(self, files, plant):
        plant("x=1/part", b"12345")
        (found,) = await files.described(["x=1/gone", "x=1/part", "z=1/gone"])
        assert (found.path, found.size) == ("x=1/part", 5)
        async for batch in files.listed():
            assert list(batch.sizes) in ([], [found.size])
            # A listing may tell it to the second only.
            assert all(abs(at - found.modified_ms) < 1_000 for at in batch.modified_ms)

    @pytest.mark.parametrize(
        "path",
        [
            "_hidden/part",
            "x=1/" + "y" * 1_500,
            "y" * 300 + "/part",
            "x=1/part/below",
            "x=1/p\u202eart",
            "x=1/%20 #?*\\",
        ],
    )
    async def test_it_describes_what_can_be_at_no_such_path(self, files, plant, path):
        plant("x=1/part", b"12345")
        assert [each.path for each in await files.described(["x=1/part", path])] == ["x=1/part"]

    async def test_it_describes_hidden_files_and_many(self, files, plant):
        plant("_hidden/part", b"1")
        for number in range(70):
            plant(f"x=1/{number}", b"12345")
        paths = ["_hidden/part", *(f"x=1/{number}" for number in range(140))]
        found = await files.described(paths)
        assert sorted(each.path for each in found) == sorted(paths[:71])
        assert sum(each.size for each in found) == 351

    async def test_it_deletes_what_is_named_and_no_more(self, files, plant):
        for path in DATA:
            plant(path, b"1")
        gone = ["a/b", "x=1/part-1.parquet", "x=1/ü %.parquet"]
        await files.delete([*gone, "x=1/never-was", "nowhere/x"])
        left = [path async for batch in files.listed() for path in batch.paths]
        assert left == sorted(set(DATA) - set(gone), key=str.encode)
        await files.delete(gone)

    @pytest.mark.parametrize(
        "path", [*KEPT_BACK, "../other/part", "x=1/../../part", "/part", "x=1//part", "", "x=1/"]
    )
    async def test_nothing_else_can_be_deleted(self, files, plant, path):
        plant("x=1/part", b"1")
        with pytest.raises(ValueError, match="no data file"):
            await files.delete(["x=1/part", path])
        assert [path async for batch in files.listed() for path in batch.paths] == ["x=1/part"]

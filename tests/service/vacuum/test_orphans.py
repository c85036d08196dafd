"""Names that are spelled beside their paths are passed over some at a time."""

import pytest

from tidegate_service.core.ports.files.named_files import NamedFiles
from tidegate_service.core.ports.store.data_files import DataFile
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.vacuum.found import Unnamed
from tidegate_service.core.vacuum.orphans import OtherNames

pytestmark = pytest.mark.anyio


async def test_names_beside_paths_are_passed_over_some_at_a_time(tmp_path):
    location = f"{tmp_path.as_uri()}/main/flights"
    others = OtherNames(location=location, share=Pool("test", 1).of("somebody"))
    await others.take(NamedFiles(paths=[f"./{n:06d}" for n in range(2_500)], vectors=[""] * 2_500))
    unnamed = Unnamed(others, names_at_once=10)
    paths = ["!", "000007", "000007x", "002400", "002499", "1"]
    files = [DataFile(path=path, size=1, modified_ms=1) for path in paths]
    found = await unnamed.of(files[:3]) + await unnamed.of(files[3:])
    assert [file.path for file in found] == ["!", "000007x", "1"]

"""Jars that cannot be fetched: what is said, by the function, a test and the demo."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo.jars import SETTINGS_VARIABLE, JarsUnavailable, fetched

ROOT = Path(__file__).parents[2]
NOWHERE = """
<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers><filesystem name="nowhere"><artifact pattern="{folder}/[artifact].[ext]"/></filesystem>
  </resolvers>
</ivysettings>
"""

pytestmark = pytest.mark.skipif(
    shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="needs Java"
)


@pytest.fixture
def without_registry(tmp_path, monkeypatch):
    """A user whose cache is empty, and whose registry is a folder with nothing in it."""
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(NOWHERE.format(folder=tmp_path / "nothing"))
    monkeypatch.setenv(SETTINGS_VARIABLE, str(settings))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_what_is_missing_is_named(without_registry):
    with pytest.raises(JarsUnavailable, match=r"org\.example:nothing:1 could not be fetched"):
        fetched("org.example", "nothing", "1")
    left = (without_registry / "cache/tidegate/jars").iterdir()
    assert [path.name for path in left] == ["lock"]


def test_the_demo_on_s3_says_so_and_fails(without_registry):
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--warehouse", "s3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "demo failed: Spark needs hadoop-aws for S3: org.apache.hadoop:hadoop-aws:" in said

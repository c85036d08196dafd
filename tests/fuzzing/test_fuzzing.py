"""Some seconds of coverage-guided fuzzing; `make chaos FULL=1` does an hour
of it (docs/reliability.md).
"""

import importlib.util
import subprocess
import sys

import pytest

from tests.fuzzing import properties, seeds
from tests.repository import ROOT


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris has no wheel for this Python or this machine",
)
@pytest.mark.parametrize("target", sorted(properties.CHECKS))
def test_nothing_is_found(target, tmp_path, request):
    seconds = request.config.getoption("--fuzzing-seconds")
    # By a shell: a process's peak memory, which the search bounds, begins with its parent's, and
    # that of a worker with many tests behind it may be above the bound.
    found = subprocess.run(
        [
            *("/bin/sh", "-c", '"$@"; exit $?', "sh"),
            *(sys.executable, "-m", "tests.fuzzing", target),
            *("--seconds", str(seconds), "--seed", "20261122", "--findings", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found.returncode == 0, f"{left}\n{found.stderr[-4000:]}"
    assert "DONE" in found.stderr


@pytest.mark.parametrize("target", sorted(properties.CHECKS))
def test_the_search_begins_with_what_holds(target):
    for seed in seeds.SEEDS[target]:
        properties.CHECKS[target](seed)

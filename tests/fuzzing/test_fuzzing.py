"""Some seconds of coverage-guided fuzzing; `make chaos FULL=1` does an hour
of it (docs/reliability.md).

Also the checks themselves: each of them fails for a reader that is wrong.
"""

import importlib.util
import subprocess
import sys
import time
from unittest.mock import ANY

import pytest

from tests.fuzzing import properties, seeds
from tests.repository import ROOT
from tidegate_protocol.base import strict_json
from tidegate_protocol.log import codec
from tidegate_protocol.scan.predicates import parse_predicate


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


class TestTheChecks:
    """Each is turned red by a reader that breaks what it is about."""

    LINE = seeds.SEEDS["actions"][0]

    def test_other_exceptions(self, monkeypatch):
        def fail(*_args, **_options):
            raise KeyError("x")

        monkeypatch.setattr(codec, "decode", fail)
        with pytest.raises(KeyError):
            properties.check_action(self.LINE)

    def test_keys_twice(self, monkeypatch):
        monkeypatch.setattr(strict_json, "_colons", lambda _: ANY)
        with pytest.raises(AssertionError):
            properties.check_action(b'{"newKind":{"a":1,"b":2,"a":3}}')

    def test_bytes_that_are_not_kept(self, monkeypatch):
        monkeypatch.setattr(codec, "encode", lambda action: action.raw.replace(b"1", b"2"))
        with pytest.raises(AssertionError):
            properties.check_action(self.LINE)

    def test_slow_reading(self, monkeypatch):
        def slow(text, *_args):
            end = time.thread_time() + 2 * properties.SLOW_S
            while time.thread_time() < end:
                pass
            return parse_predicate("true", properties.SCHEMA, ())

        monkeypatch.setattr(properties, "parse_predicate", slow)
        with pytest.raises(AssertionError, match="took more than"):
            properties.check_predicate(b"1 = 1")

    def test_time_that_grows_faster_than_the_text(self, monkeypatch):
        def quadratic(text, *_args):
            end = time.thread_time() + 1e-6 * len(text) ** 2
            while time.thread_time() < end:
                pass

        monkeypatch.setattr(properties, "parse_predicate", quadratic)
        with pytest.raises(AssertionError, match="grows faster"):
            properties._check_growth("d_integer = 1")

    def test_no_outcome_at_all(self, monkeypatch):
        monkeypatch.setattr(
            properties,
            "parse_predicate",
            lambda text, *rest: parse_predicate("false", *rest),
        )
        with pytest.raises(AssertionError, match="neither"):
            properties.check_predicate(b"1 = 1")

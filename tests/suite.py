"""Runs pytest, then once more, by itself, what failed; ends with what a reader needs who sees
nothing else.

    python -m tests.suite [--short] [other arguments of pytest]

A test that passes the second time is flaky: named, and from `TOO_MANY_FLAKY` on a failure of the
run.
"""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

REPORTS = Path(".pytest_cache")
TOO_MANY_FLAKY = 4
MOST_RUN_AGAIN = 20
"""More failures are the code's, not the machine's."""
RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
SLOWEST_FILES = 10
LINES_OF_AN_ERROR = 4


def main(arguments: list[str]) -> int:
    began = time.monotonic()
    first, again = REPORTS / "first.xml", REPORTS / "again.xml"
    # What failed in an earlier run is not run again by this one.
    code = _pytest(first, *arguments, "--cache-clear")
    cases = _cases(first)
    failed, flaky = _failures(cases), {}
    passed = len(cases) - len(failed) - sum(case.find("skipped") is not None for case in cases)
    if code == pytest.ExitCode.TESTS_FAILED and 0 < len(failed) <= MOST_RUN_AGAIN:
        print(f"\n== {len(failed)} failed: once more, by themselves", flush=True)
        by_themselves = ("--last-failed", "--numprocesses=0", "--dist=no")
        if _pytest(again, *arguments, *by_themselves) in RAN:
            repeated = _cases(again)
            # One that was not run again has not passed.
            passed_then = {_name(case) for case in repeated} - _failures(repeated).keys()
            flaky = {name: why for name, why in failed.items() if name in passed_then}
            failed = {name: why for name, why in failed.items() if name not in passed_then}
        if not failed and len(flaky) < TOO_MANY_FLAKY:
            code = pytest.ExitCode.OK
    _tell("slowest files", [f"{s:7.1f} s {file}" for file, s in _slowest(cases)])
    _tell("flaky: failed, then passed", _told(flaky))
    _tell("failed", _told(failed))
    print(
        f"== {passed} passed at once, {len(flaky)} flaky, {len(failed)} failed, "
        f"{time.monotonic() - began:.0f} s"
    )
    return code


def _pytest(report: Path, *arguments: str) -> int:
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    options = (f"--junitxml={report}", "-o", "junit_family=xunit1")
    return subprocess.run([sys.executable, "-m", "pytest", *arguments, *options]).returncode


def _cases(report: Path) -> list[ElementTree.Element]:
    """None where pytest ended before it had a report to write."""
    return list(ElementTree.parse(report).iter("testcase")) if report.exists() else []


def _failures(cases: list[ElementTree.Element]) -> dict[str, str]:
    """By the test's name, what it said."""
    found = {}
    for case in cases:
        for each in (*case.findall("failure"), *case.findall("error")):
            found[_name(case)] = each.get("message") or each.text or ""
    return found


def _name(case: ElementTree.Element) -> str:
    """As pytest takes it on its command line."""
    file, owner = str(case.get("file")), str(case.get("classname"))
    class_ = owner.removeprefix(file.removesuffix(".py").replace("/", ".")).lstrip(".")
    return "::".join(filter(None, (file, class_, case.get("name"))))


def _slowest(cases: list[ElementTree.Element]) -> list[tuple[str, float]]:
    seconds: Counter[str] = Counter()
    for case in cases:
        seconds[str(case.get("file"))] += float(case.get("time", 0))
    return seconds.most_common(SLOWEST_FILES)


def _told(failures: dict[str, str]) -> list[str]:
    lines = []
    for name, why in failures.items():
        lines += [name, *(f"    {line}" for line in why.splitlines()[:LINES_OF_AN_ERROR])]
    return lines


def _tell(title: str, lines: list[str]) -> None:
    if lines:
        print("\n".join([f"== {title}", *lines]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

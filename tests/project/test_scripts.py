"""The scripts that look for Python and Java, on machines put together from a few commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT

TOOLS = ("sh", "dirname", "env", "grep", "head", "readlink", "sed")


@pytest.fixture
def machine(tmp_path):
    """A folder that is the whole PATH of `run`."""
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    return tmp_path


def add(folder: Path, name: str, *lines: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def run(script: str, machine: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "scripts" / script],
        env={"PATH": str(machine), **variables},
        capture_output=True,
        text=True,
    )


def java(folder: Path, version: str) -> None:
    add(folder, "bin/java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


class TestFindPython:
    def test_one_that_serves_is_found_behind_others(self, machine):
        add(machine, "python3", "exit 1")  # too old, or without venv
        (machine / "python3.13").symlink_to(sys.executable)

        done = run("find-python", machine)

        assert done.returncode == 0
        assert Path(done.stdout.strip()).samefile(sys.executable)

    def test_a_chosen_one_comes_first(self, machine):
        add(machine, "python3", "echo the wrong one")
        done = run("find-python", machine, PYTHON=sys.executable)
        assert Path(done.stdout.strip()).samefile(sys.executable)

    def test_without_any_it_fails(self, machine):
        done = run("find-python", machine)
        assert (done.returncode, done.stdout) == (1, "")


class TestFindJava:
    @pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
    def test_a_newer_one_serves(self, machine, version):
        java(machine / "jdk", version)
        done = run("find-java", machine, JAVA_HOME=str(machine / "jdk"))
        assert done.stdout.strip() == str(machine / "jdk")

    @pytest.mark.parametrize("version", ["1.8.0_392", "11.0.22"])
    def test_an_older_one_does_not(self, machine, version):
        java(machine / "old", version)
        java(machine / "new", "17.0.1")
        (machine / "java").symlink_to(machine / "new" / "bin" / "java")

        done = run("find-java", machine, JAVA_HOME=str(machine / "old"))

        assert done.stdout.strip() == str(machine / "new")

    def test_a_broken_one_does_not(self, machine):
        add(machine / "broken", "bin/java", "echo 'no Java runtime present' >&2", "exit 2")
        java(machine / "new", "17.0.1")
        (machine / "java").symlink_to(machine / "new" / "bin" / "java")

        done = run("find-java", machine, JAVA_HOME=str(machine / "broken"))

        assert done.stdout.strip() == str(machine / "new")


class TestSystemPackages:
    @pytest.fixture
    def machine(self, machine):
        add(machine, "make")
        java(machine / "jdk", "17.0.1")
        return machine

    @pytest.fixture
    def call(self, machine):
        return lambda: run("system-packages", machine, JAVA_HOME=str(machine / "jdk"))

    def test_with_everything_there_it_does_and_says_nothing(self, machine, call):
        (machine / "python3").symlink_to(sys.executable)
        done = call()
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_what_it_cannot_install_it_asks_for(self, call):
        done = call()
        assert done.returncode == 1
        assert "apt-get install python3 python3-venv" in done.stderr

    def test_without_rights_it_asks_too(self, machine, call):
        add(machine, "id", "echo 1000")
        add(machine, "sudo", "exit 1")
        add(machine, "apt-get", f"touch {machine}/apt-was-called")

        done = call()

        assert done.returncode == 1
        assert "apt-get install python3 python3-venv" in done.stderr
        assert not (machine / "apt-was-called").exists()

    def test_with_rights_it_installs_the_first_that_serves(self, machine, call):
        # A distribution whose python3 is too old and that has a newer one beside it.
        add(machine, "id", "echo 0")
        add(machine, "touch", "exit 0")
        add(
            machine,
            "apt-get",
            f'echo "$*" >>{machine}/apt.log',
            f'case "$*" in *python3.12*) {shutil.which("ln")} -s {sys.executable} '
            f"{machine}/python3.12 ;; esac",
        )
        add(
            machine,
            "apt-cache",
            'case "$2" in python3-venv | python3.12-venv) echo "  Candidate: 1.2" ;;',
            '*) echo "  Candidate: (none)" ;; esac',
        )

        done = call()

        assert done.returncode == 0, done.stderr
        log = (machine / "apt.log").read_text().splitlines()
        assert [line.split()[0] for line in log] == ["update", "install", "install"]
        assert log[1].endswith("python3 python3-venv")
        assert log[2].endswith("python3.12 python3.12-venv")
        assert os.access(machine / "python3.12", os.X_OK)

"""The documentation names only what is there."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from tests.repository import PACKAGES, ROOT, text_files
from tidegate_service.cli.commands import cli

PAGES = [(path, text) for path, text in text_files() if path.suffix == ".md"]
ON_EVERY_PAGE = pytest.mark.parametrize(("path", "text"), PAGES, ids=lambda value: str(value)[:40])
_TEST = re.compile(r"test_[a-z0-9_]+\*?\.py")
_COMMAND = re.compile(r"^[^`|\n]*\.venv/bin/tidegate ([^\n]+)$", re.M)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def test_there_are_pages():
    assert "README.md" in {str(path) for path, _ in PAGES}


@ON_EVERY_PAGE
def test_every_test_that_a_page_names_exists(path, text):
    missing = {name for name in _TEST.findall(text) if not list((ROOT / "tests").rglob(name))}
    assert missing == set()


COMMANDS = sorted(
    {
        command
        for _, text in PAGES
        for command in _COMMAND.findall(text.replace("\\\n", " "))
        if "<" not in command
    }
)


def test_there_are_commands():
    assert any(command.startswith("table register") for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_a_page_shows_can_be_given(command):
    """`--help` answers only once the rest of the line has been understood."""
    done = CliRunner().invoke(cli, [*shlex.split(command, comments=True), "--help"])
    assert done.exit_code == 0, done.output


@ON_EVERY_PAGE
def test_every_relative_link_leads_somewhere(path, text):
    targets = {target for target in _LINK.findall(text) if "://" not in target}
    assert {target for target in targets if not (ROOT / path.parent / target).exists()} == set()


_FILE = re.compile(r"`([a-z_]+/[a-z0-9_/]+\.py)`")
_STEP = re.compile(r"^\| \d+ \|(.+)\|(.+)\|$", re.M)
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PLACES = (
    ROOT,
    ROOT / "tests",
    ROOT / "tests" / "service",
    *(place for name in PACKAGES for place in ((ROOT / name).parent, ROOT / name)),
)


@ON_EVERY_PAGE
def test_every_module_that_a_page_names_by_its_folder_exists(path, text):
    named, places = set(_FILE.findall(text)), (ROOT / path.parent, *PLACES)
    assert {name for name in named if not any((place / name).exists() for place in places)} == set()


def test_the_house_shows_every_room():
    shown = set(re.findall(r"(?<![\w/])([a-z_]+)/", ARCHITECTURE.split("```")[1]))
    rooms = {file.parent for name in PACKAGES for file in (ROOT / name).rglob("__init__.py")}
    rooms -= {ROOT / name for name in PACKAGES}
    assert {room.name for room in rooms} - shown == set()


def test_the_walk_names_functions_where_they_are():
    steps = _STEP.findall(ARCHITECTURE)
    assert len(steps) > 15
    for said, room in steps:
        files = re.findall(r"`([\w/]+\.py)`", room)
        folder = files[0].rpartition("/")[0]
        texts = [
            (place / f"{'' if '/' in file else folder + '/'}{file}").read_text()
            for file in files
            for place in PLACES
            if (place / f"{'' if '/' in file else folder + '/'}{file}").exists()
        ]
        assert len(texts) == len(files), room
        for name in re.findall(r"`([\w.]+)`", said):
            *_, function = name.split(".")
            found = any(re.search(rf"(def|class) {function}\b", text) for text in texts)
            assert found or name == "Proposal", name

"""Commands, links, tests and versions of the documentation are what is there."""

import re
import shlex
from fnmatch import fnmatch

import pytest
from typer.testing import CliRunner

from tests.interop.processes.foreign_spark import DELTA, PYSPARK
from tests.repository import ROOT, text_files
from tidegate_service.cli.commands import cli

TEXTS = dict(text_files())
PAGES = [(path, text) for path, text in TEXTS.items() if path.suffix == ".md"]
PLACES = {each.as_posix() for path in TEXTS for each in (path, *path.parents)}
ON_EVERY_PAGE = pytest.mark.parametrize(("path", "text"), PAGES, ids=lambda value: str(value)[:40])
_COMMAND = re.compile(r"^[^`|\n]*\.venv/bin/tidegate ([^\n]+)$", re.M)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\]\(([^)#:\s]*)#([^)]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)
_SOURCE = re.compile(r"`([\w./*-]+\.py|tests/[\w./*-]+)`")
_ENGINES = re.compile(r"^\| (?:`(\w+)`|(\w+)) ([\d.]+\d)\b", re.M)


def test_there_are_pages():
    assert "README.md" in {str(path) for path, _ in PAGES}


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


def anchors(text: str) -> set[str]:
    """As GitHub makes them of headings, and those that a page gives by itself."""
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {each.replace(" ", "-") for each in headings} | set(re.findall(r'id="([^"]+)"', text))


@ON_EVERY_PAGE
def test_every_anchor_is_one_of_its_page(path, text):
    targets = {
        (ROOT / path.parent / page if page else ROOT / path, to)
        for page, to in _ANCHOR.findall(text)
    }
    assert {(page.name, to) for page, to in targets if to not in anchors(page.read_text())} == set()


@ON_EVERY_PAGE
def test_every_source_file_that_a_page_names_exists(path, text):
    names = {name.rstrip("/") for name in _SOURCE.findall(text)}
    assert {name for name in names if not any(_is_at(place, name) for place in PLACES)} == set()


def _is_at(place: str, name: str) -> bool:
    return fnmatch(place, name) or fnmatch(place, f"*/{name}")


def test_engines_are_tested_in_the_versions_that_are_pinned():
    [page] = [text for path, text in PAGES if path.name == "stock-engines.md"]
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    engines = {
        f"{(quoted or plain).lower()}=={version}"
        for quoted, plain, version in _ENGINES.findall(page)
    }

    assert {name.partition("==")[0] for name in engines} == {"pyspark", "deltalake", "duckdb"}
    assert engines <= set(pins)
    assert f"Delta Spark {DELTA.rpartition(':')[2]} on Spark {PYSPARK.rpartition('=')[2]} |" in page

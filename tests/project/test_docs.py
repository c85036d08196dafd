"""Commands and links of the documentation lead somewhere."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from tests.repository import ROOT, text_files
from tidegate_service.cli.commands import cli

PAGES = [(path, text) for path, text in text_files() if path.suffix == ".md"]
ON_EVERY_PAGE = pytest.mark.parametrize(("path", "text"), PAGES, ids=lambda value: str(value)[:40])
_COMMAND = re.compile(r"^[^`|\n]*\.venv/bin/tidegate ([^\n]+)$", re.M)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


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

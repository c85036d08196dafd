"""The documentation names only what is there."""

import re

import pytest

from tests.repository import ROOT, text_files

PAGES = [(path, text) for path, text in text_files() if path.suffix == ".md"]
ON_EVERY_PAGE = pytest.mark.parametrize(("path", "text"), PAGES, ids=lambda value: str(value)[:40])
_TEST = re.compile(r"test_[a-z0-9_]+\*?\.py")
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def test_there_are_pages():
    assert "README.md" in {str(path) for path, _ in PAGES}


@ON_EVERY_PAGE
def test_every_test_that_a_page_names_exists(path, text):
    missing = {name for name in _TEST.findall(text) if not list((ROOT / "tests").rglob(name))}
    assert missing == set()


@ON_EVERY_PAGE
def test_every_relative_link_leads_somewhere(path, text):
    targets = {target for target in _LINK.findall(text) if "://" not in target}
    assert {target for target in targets if not (ROOT / path.parent / target).exists()} == set()

"""Limits of the product are values that a test passes, not constants that it replaces."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import PACKAGES, python_sources

KNOWN = {
    "tests/service/catalog_managed/test_large_held.py",
    "tests/service/maintenance/test_large_versions.py",
}
"""Their limits say from what length on bytes are looked at in threads, wherever that is done. No
file may be added here."""


def numbers() -> set[str]:
    """The names of the product's constants that are numbers."""
    return {
        target.id
        for path, text in python_sources().items()
        if path.parts[0] in {Path(package).parts[0] for package in PACKAGES}
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and is_number(node.value)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }


def is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=int() | float()):
            return not isinstance(value.value, bool)
        case ast.BinOp():
            return is_number(value.left) or is_number(value.right)
        case ast.UnaryOp():
            return is_number(value.operand)
    return False


def replaced(source: str, names: set[str]) -> Iterator[str]:
    """Which of the constants a test may replace: it has `setattr`, and their names as texts."""
    nodes = list(ast.walk(ast.parse(source)))
    if not any(isinstance(node, ast.Attribute) and node.attr == "setattr" for node in nodes):
        return
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.rpartition(".")[2]
            if name in names:
                yield name


def test_no_test_replaces_a_number():
    names = numbers()
    found = {
        str(path): sorted(set(replaced(text, names)))
        for path, text in python_sources().items()
        if path.parts[0] == "tests"
    }
    assert {path: of for path, of in found.items() if of and path not in KNOWN} == {}
    assert {path for path in KNOWN if not found[path]} == set(), "these have none any more"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("monkeypatch.setattr(module, 'MOST', 1)", ["MOST"]),
        ("monkeypatch.setattr('tidegate_service.core.module.MOST', 1)", ["MOST"]),
        ("for name in ['MOST']: patched.setattr(module, name, 1)", ["MOST"]),
        ("monkeypatch.setattr(module, 'OTHER', 1)", []),
        ("print('MOST')", []),
    ],
)
def test_it_finds_what_replaces_one(source: str, found: list[str]):
    assert list(replaced(source, {"MOST"})) == found


@pytest.mark.parametrize(
    ("value", "number"),
    [("1", True), ("64 * _KIB", True), ("-0.5", True), ("'a'", False), ("True", False)],
)
def test_it_knows_a_number(value: str, number: bool):
    assert is_number(ast.parse(value, mode="eval").body) is number


def test_no_constant_is_given_a_second_value():
    """As one was by a renaming: where it was used, the other's value stood in for it."""
    for path, text in python_sources().items():
        names = [
            target.id
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        assert sorted(names) == sorted(set(names)), path

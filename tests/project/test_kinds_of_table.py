"""Two kinds of table are a type: the core asks for a table's kind only where it chooses by it."""

import ast
from collections.abc import Iterator

import pytest

from tests.repository import python_sources

CORE = "service/tidegate_service/core/"
CHOOSING = {
    "commit/batches/kinds.py": "the batch that commits",
    "log/catching_up/catch_up.py": "what is read on",
    "maintenance/kinds.py": "what maintenance does",
    "ports/kinds.py": "the kind itself",
    "tables/create.py": "the protocol of a table to be",
    "tables/first_versions.py": "how version 0 is made the table's own",
    "tables/register.py": "what registering does",
    "upkeep/unread_commits.py": "what may lie in a log unread",
}
"""Where a kind is chosen, and what for."""
FLAG = "catalog_managed"


def conditions(source: str) -> Iterator[str]:
    """What in the source decides by the flag."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                asked: list[ast.expr] = [test]
            case ast.BoolOp(values=asked) | ast.comprehension(ifs=asked):
                pass
            case ast.UnaryOp(op=ast.Not(), operand=asked_once):
                asked = [asked_once]
            case ast.Compare(left=left, comparators=others):
                asked = [left, *others]
            case ast.Match(subject=subject):
                asked = [subject]
            case ast.Subscript(slice=index):
                asked = [index]
            case _:
                continue
        yield from (ast.unparse(node) for one in asked if is_flag(one))


def is_flag(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name == FLAG
    return False


def test_the_kind_is_asked_for_only_where_it_is_chosen():
    found = {
        path.as_posix().removeprefix(CORE): list(conditions(text))
        for path, text in python_sources().items()
        if path.as_posix().startswith(CORE)
    }
    asking = {path: of for path, of in found.items() if of}
    assert {path: of for path, of in asking.items() if path not in CHOOSING} == {}
    assert set(CHOOSING) - set(asking) == set(), "these choose by nothing any more"
    assert {path: of for path, of in asking.items() if len(of) > 1} == {}, "once is enough"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if table.catalog_managed: pass", 1),
        ("a = 1 if catalog_managed else 2", 1),
        ("a = b and table.catalog_managed", 1),
        ("a = not table.catalog_managed", 1),
        ("a = [b for b in c if b.catalog_managed]", 1),
        ("a = table.catalog_managed is True", 1),
        ("a = kinds[table.catalog_managed]", 1),
        ("match table.catalog_managed:\n    case True: pass", 1),
        ("a = Table(catalog_managed=table.catalog_managed)", 0),
        ("if table.kind.log_first: pass", 0),
    ],
)
def test_it_finds_what_decides(source: str, found: int):
    assert len(list(conditions(source))) == found

"""SQL goes by one door (docs/architecture.md, "The index")."""

import ast

import pytest

from tests.repository import ROOT

INDEX = ROOT / "service" / "tidegate_service" / "index"
WALL = INDEX / "postgres"
OUTSIDE = sorted(
    file
    for file in INDEX.rglob("*.py")
    if not {WALL, INDEX / "embedded", INDEX / "schema"} & set(file.parents)
)
PAST_THE_DOOR = {"cursor", "copy", "exec_driver_sql", "raw_connection", "get_raw_connection"}
"""What gives a statement to the driver, or the driver's own cursors."""


def calls(tree: ast.AST) -> set[str]:
    return {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
    }


def texts_in_functions(tree: ast.AST) -> list[int]:
    """The lines where a function spells a statement out, which has no name then."""
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [
        node.lineno
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("text", "Statement")
        and any(isinstance(one, ast.Constant | ast.JoinedStr) for one in node.args)
    ]


def test_there_are_files():
    assert INDEX / "commit_index.py" in OUTSIDE
    assert len(OUTSIDE) > 40


@pytest.mark.parametrize("file", OUTSIDE, ids=lambda file: str(file.relative_to(INDEX)))
def test_no_file_outside_gives_statements_to_the_driver(file):
    assert calls(ast.parse(file.read_text())) & PAST_THE_DOOR == set()


@pytest.mark.parametrize("file", OUTSIDE, ids=lambda file: str(file.relative_to(INDEX)))
def test_a_statement_that_is_text_has_a_name_at_the_top_of_its_file(file):
    assert texts_in_functions(ast.parse(file.read_text())) == []


def test_what_the_rule_forbids_is_found():
    spelled = "async def f(c):\n    await c.execute(text('SELECT 1'))\n    c.driver.cursor()\n"
    assert texts_in_functions(ast.parse(spelled)) == [2]
    assert calls(ast.parse(spelled)) & PAST_THE_DOOR == {"cursor"}
    named = "ONE = text('SELECT 1')\nasync def f(c):\n    await c.execute(ONE)\n"
    assert texts_in_functions(ast.parse(named)) == []

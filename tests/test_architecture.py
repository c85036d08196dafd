"""The house holds: layers, sizes, and what must not stand in any file."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.repository import ROOT, python_sources, text_files

LONGEST_FILE = 350
# Put together here, so that this file does not break its own rule.
UNFINISHED = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "NotImplemented" + "Error"]))
JAVA_PACKAGE = re.compile(r"\.(org\.apache|java\.(io|lang|net|time|util))\b")
INDEX_HOST = re.compile(r"https?://[^\s\"'<>)]*(/simple\b|/maven2\b|/-/\S*\.tgz|\.whl\b)")
HOME_FOLDER = re.compile(r"(?<![\w.*])/(?:root|home/[\w.-]+|Users/[\w.-]+)/")


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo", *options],
        cwd=folder,
        capture_output=True,
        text=True,
    )


class TestLayers:
    def test_every_contract_is_kept(self):
        done = lint_imports(ROOT)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_the_client_starts_without_spark(self):
        heavy = {"pyspark", "pyarrow", "pandas", "numpy"}
        code = f"import sys, tidegate; print(sorted({heavy} & set(sys.modules)))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"


class TestFiles:
    def test_files_stay_livable(self):
        long = {
            str(path): lines
            for path, text in python_sources().items()
            if (lines := len(text.splitlines())) > LONGEST_FILE
        }
        assert long == {}, "split these by subject"

    def test_every_module_says_what_it_is(self):
        silent = [str(path) for path, tree in trees().items() if not ast.get_docstring(tree)]
        assert silent == []

    def test_nothing_is_left_unfinished(self):
        assert lines_with(UNFINISHED, but_not=".md") == []

    def test_no_error_is_swallowed_whole(self):
        swallowed = [
            f"{path}:{node.lineno}"
            for path, tree in trees().items()
            for node in ast.walk(tree)
            if swallows_everything(node)
        ]
        assert swallowed == []

    def test_no_file_knows_this_machine(self):
        here = [str(folder) for folder in (ROOT.parent, Path.home()) if len(folder.parts) > 1]
        # A folder that every machine has says nothing about this one.
        here = [folder for folder in here if folder not in ("/tmp", "/var/tmp", "/root")]
        ours = [re.compile(rf"(?<![\w.]){re.escape(folder)}/") for folder in here]
        for pattern in (HOME_FOLDER, *ours):
            assert lines_with(pattern) == []

    def test_classes_of_the_jvm_are_asked_for_by_their_whole_names(self):
        assert [line for line in lines_with(JAVA_PACKAGE) if line.startswith("client/")] == []

    def test_no_file_knows_a_package_index(self):
        assert lines_with(INDEX_HOST) == []


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(text) for path, text in python_sources().items()}


def lines_with(pattern: re.Pattern[str], *, but_not: str | None = None) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in text_files()
        if path.suffix != but_not
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def swallows_everything(node: ast.AST) -> bool:
    """Whether this catches any exception, or suppresses it, and does nothing about it."""
    if isinstance(node, ast.ExceptHandler):
        caught = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
        idle = all(isinstance(part, ast.Pass | ast.Continue) or is_text(part) for part in node.body)
        return idle and any(is_everything(kind) for kind in caught)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("suppress", "contextlib.suppress"):
        return any(is_everything(argument) for argument in node.args)
    return False


def is_everything(kind: ast.expr | None) -> bool:
    return kind is None or ast.unparse(kind) in ("Exception", "BaseException")


def is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)

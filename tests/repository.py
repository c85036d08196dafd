"""The files of the repository, for the tests that read them."""

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "protocol/tidegate_protocol",
    "service/tidegate_service",
    "client/tidegate",
    "migrations/tidegate_migrations",
)
PYTHON_FOLDERS = (*PACKAGES, "tests", "benchmarks", "demo", "scripts")

# Read from .gitignore and not asked of git, so that a copy without its history is tested too.
_IGNORED = [
    ".git",
    *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line),
]


def text_files() -> Iterator[tuple[Path, str]]:
    """Every file that is kept in version control and is text: its path from the root, its text."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if not _is_ignored(name))
        for name in sorted(names):
            path = Path(folder, name)
            if _is_ignored(name) or path.is_symlink():
                continue
            try:
                text = path.read_bytes().decode()
            except UnicodeDecodeError:
                continue
            yield path.relative_to(ROOT), text


def python_sources() -> dict[Path, str]:
    """Every Python file that is ours: its path from the root, its text."""
    return {
        path: text
        for path, text in text_files()
        if path.suffix == ".py" and any(path.is_relative_to(f) for f in PYTHON_FOLDERS)
    }


def _is_ignored(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _IGNORED)

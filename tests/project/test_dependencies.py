"""Every dependency is pinned, and installed as pinned."""

import re
import tomllib
from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
OWN_NAME = PROJECT["project"]["name"]


def needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """The names of everything that an installed distribution needs here, itself included."""
    if (name, extras) in seen:
        return set()
    seen.add((name, extras))
    names = {name}
    for text in distribution(name).requires or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            names |= needed(
                canonicalize_name(requirement.name), frozenset(requirement.extras), seen
            )
    return names


def pinned() -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in (p.split("==") for p in PINS)}


def test_a_constraint_is_a_name_and_a_version():
    pin = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*")
    assert [line for line in PINS if not pin.fullmatch(line)] == []


def test_no_constraint_is_given_twice():
    assert len(pinned()) == len(PINS)


def test_everything_needed_is_pinned_and_installed_as_pinned():
    names = needed(OWN_NAME, frozenset({"dev"}), set()) - {OWN_NAME}

    assert {name: distribution(name).version for name in names} == {
        name: version for name, version in pinned().items() if name in names
    }


def test_the_build_is_pinned():
    assert all("==" in text for text in PROJECT["build-system"]["requires"])

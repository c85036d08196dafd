"""Values of table properties (Delta: DeltaConfig.scala): each parser raises `ValueError` with what
it expects."""

import re
from collections.abc import Callable

_LONG = re.compile(r"[+-]?[0-9]{1,18}")
_INTERVAL = re.compile(
    r"(interval\s+)?([0-9]+\s+(week|day|hour|minute|second|millisecond|microsecond)s?\s*)+"
)
_NO_LIMIT = 2**63


def boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


def integer(least: int = -_NO_LIMIT, most: int = _NO_LIMIT) -> Callable[[str], int]:
    at_least = "" if least == -_NO_LIMIT else f" of at least {least}"

    def parse(text: str) -> int:
        if _LONG.fullmatch(text) is None or not least <= int(text) <= most:
            at_most = "" if most == _NO_LIMIT else f" and at most {most:,}"
            raise ValueError(f"expected an integer{at_least}{at_most}")
        return int(text)

    return parse


def interval(text: str) -> str:
    if _INTERVAL.fullmatch(text.strip().lower()) is None:
        raise ValueError("expected an interval such as 'interval 7 days', without months or years")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for choice in choices:
            if choice.lower() == text.lower():
                return choice
        raise ValueError(f"expected one of {', '.join(choices)}")

    return parse

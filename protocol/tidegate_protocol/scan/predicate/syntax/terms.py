"""What a predicate costs, counted before anything is parsed."""

import re

_TOKENS = re.compile(
    r"""'(?:[^'\\]|\\.)*(?:'|\\?\Z) | "(?:[^"\\]|\\.)*(?:"|\\?\Z)   # a text, to its end or all
      | [0-9][\w.]* | [\s,]+
      | (?P<pattern>like\b)
      | (?P<one>`[^`]*`? | \w+ | [^\w\s])""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_WEIGHTS = {"one": 1, "pattern": 8}
"""Of a comparison and a LIKE: about what judging a file by one takes beside the other."""


def terms_of(text: str) -> int:
    """How many names, operators and parentheses a predicate has, patterns counted by what they
    cost. Literals and the commas between them are free, so that an IN counts little, however many
    values it lists. Any text has terms, a predicate or not, in time linear in its length."""
    kinds = (match.lastgroup for match in _TOKENS.finditer(text))
    return sum(_WEIGHTS[kind] for kind in kinds if kind is not None)

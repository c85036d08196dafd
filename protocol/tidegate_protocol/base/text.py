"""Bounded excerpts of untrusted text for error messages."""

EXCERPT = 120


def excerpt(value: bytes | str) -> str:
    """At most `EXCERPT` characters of the value, escaped so that it stays on one line."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return repr(text if len(text) <= EXCERPT else text[:EXCERPT] + "…")

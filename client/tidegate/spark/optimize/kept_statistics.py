"""What of a file's statistics stays where others take their place."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tidegate_protocol.schema.data_types import Leaf

_TIGHT = "tightBounds"
_NULLS = "nullCount"
_BOUNDS = ("minValues", "maxValues")

_Fields = Mapping[str, msgspec.Raw]


def with_kept(text: str, before: str | None, leaves: Iterable[Leaf]) -> str:
    """The `stats` text with what `before` says of these columns wherever it says nothing itself,
    to the letter. A column of nothing but nulls has no bounds. Bounds that are kept are as wide as
    they were."""
    found, old = _fields(text.encode()), _fields((before or "").encode())
    trees: dict[str, dict[str, Any]] = {kind: {} for kind in (*_BOUNDS, _NULLS)}
    keeps_bounds = False
    for leaf in leaves:
        path = leaf.physical_path
        nulls = _entry(found, _NULLS, path)
        is_empty = nulls is not None and nulls == found["numRecords"]
        _put(trees[_NULLS], path, nulls or _entry(old, _NULLS, path))
        for kind in _BOUNDS:
            bound = _entry(found, kind, path)
            if bound is None and not is_empty:
                bound = _entry(old, kind, path)
                keeps_bounds |= bound is not None
            _put(trees[kind], path, bound)
    whole: dict[str, Any] = {**found, **trees}
    if keeps_bounds and old.get(_TIGHT) == msgspec.Raw(b"false"):
        whole[_TIGHT] = False
    return msgspec.json.encode(whole).decode()


def _entry(statistics: _Fields, kind: str, path: tuple[str, ...]) -> msgspec.Raw | None:
    found = statistics.get(kind)
    for name in path:
        found = None if found is None else _fields(found).get(name)
    return None if found == msgspec.Raw(b"null") else found


def _fields(text: bytes | msgspec.Raw) -> _Fields:
    """None where the text is no object: others may have written it."""
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _put(tree: dict[str, Any], path: tuple[str, ...], entry: msgspec.Raw | None) -> None:
    if entry is None:
        return
    *structs, name = path
    for struct in structs:
        tree = tree.setdefault(struct, {})
    tree[name] = entry

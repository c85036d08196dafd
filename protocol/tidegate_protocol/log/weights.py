"""How much memory and work an action is, counted in ordinary ones."""

from collections.abc import Iterable, Mapping

from tidegate_protocol.log.actions import Action, Add, CommitInfo, Metadata, Remove
from tidegate_protocol.log.spooled import SpooledAdd, SpooledRemove

UNIT_BYTES = 1024
"""What one of the weight takes in memory, about."""
_ENTRY = 100
"""The bytes that an entry of a map takes beside its two texts."""
_TIMES_IN_MEMORY = 3
"""The text of a schema, or of a property, is in the line, by itself, and on the way from one to the
other."""
_NOTHING: Mapping[str, str | None] = {}


def weight_of_all(actions: Iterable[Action]) -> int:
    """The number of actions, and of the kilobytes beyond the first that each one is held in."""
    return sum(map(_weight, actions))


def _weight(action: Action) -> int:
    if isinstance(action, SpooledAdd | SpooledRemove):
        # Its bytes are elsewhere.
        maps = (action.tags or _NOTHING, action.partition_values or _NOTHING)
        texts = sum([len(name) + len(value or "") for map_ in maps for name, value in map_.items()])
        return 1 + (len(action.path) + texts + _ENTRY * sum(map(len, maps))) // UNIT_BYTES
    if isinstance(action, Metadata):
        entries = len(action.configuration) + len(action.format.options)
        entries += len(action.partition_columns)
        return 1 + (_TIMES_IN_MEMORY * len(action.raw) + _ENTRY * entries) // UNIT_BYTES
    entries = 0
    if isinstance(action, Add | Remove):
        entries = len(action.tags or _NOTHING) + len(action.partition_values or _NOTHING)
    elif isinstance(action, CommitInfo):
        entries = len(action.tags or _NOTHING)
    return 1 + (len(action.raw) + _ENTRY * entries) // UNIT_BYTES


def has_more_values(value: object, encoded: bytes, most: int) -> bool:
    """Whether decoded JSON holds more than `most` values, those in lists and maps counted each by
    itself. `encoded` is its text, which tells it at once of nearly all: there are no more values
    than commas and opened brackets."""
    if encoded.count(b",") + encoded.count(b"[") + encoded.count(b"{") < most:
        return False
    found, left = 0, [value]
    while left and found <= most:
        found += 1
        inner = left.pop()
        if isinstance(inner, Mapping):
            left.extend(inner.values())
        elif isinstance(inner, list | tuple):
            left.extend(inner)
    return found > most

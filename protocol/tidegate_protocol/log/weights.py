"""How much memory and work an action is, counted in ordinary ones."""

from collections.abc import Iterable, Mapping

from tidegate_protocol.log.actions import Action, Add, CommitInfo, Remove
from tidegate_protocol.log.spooled import SpooledAdd, SpooledRemove

_KILOBYTE = 1024
_ENTRY = 100
"""The bytes that an entry of a map takes beside its two texts."""
_NOTHING: Mapping[str, str | None] = {}


def weight_of_all(actions: Iterable[Action]) -> int:
    """The number of actions, and of the kilobytes beyond the first that each one is held in."""
    return sum(map(_weight, actions))


def _weight(action: Action) -> int:
    if isinstance(action, SpooledAdd | SpooledRemove):
        # Its bytes are elsewhere.
        maps = (action.tags or _NOTHING, action.partition_values or _NOTHING)
        texts = sum([len(name) + len(value or "") for map_ in maps for name, value in map_.items()])
        return 1 + (len(action.path) + texts + _ENTRY * sum(map(len, maps))) // _KILOBYTE
    entries = 0
    if isinstance(action, Add | Remove):
        entries = len(action.tags or _NOTHING) + len(action.partition_values or _NOTHING)
    elif isinstance(action, CommitInfo):
        entries = len(action.tags or _NOTHING)
    return 1 + (len(action.raw) + _ENTRY * entries) // _KILOBYTE

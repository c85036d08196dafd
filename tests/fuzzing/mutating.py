"""Changes to JSON that bytes alone hardly come to: keys twice, other types, deeper nesting."""

import json
import random
from collections.abc import Callable

Mutate = Callable[[bytes, int], bytes]

_VALUES = (
    "null",
    "true",
    "-0",
    "1e999",
    "1.5",
    "-1",
    "9223372036854775808",
    "18446744073709551616",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\u2028"',
    '"{\\"numRecords\\":1}"',
    "[]",
    "{}",
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    "NaN",
)
_HOLE = "\ue000"


def mutator(mutate: Mutate) -> Callable[[bytes, int, int], bytes]:
    """A custom mutator of libFuzzer: JSON by its structure half the time, else `mutate`."""

    def mutated(data: bytes, max_size: int, seed: int) -> bytes:
        dice = random.Random(seed)
        if dice.random() < 0.5:
            changed = _changed(data, dice)
            if changed is not None and len(changed) <= max_size:
                return changed
        return mutate(data, max_size)

    return mutated


def _changed(data: bytes, dice: random.Random) -> bytes | None:
    """One line of the input with one value of it replaced, or one key written twice."""
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return None
    places = list(_places(value))
    if not places:
        return None
    holder, key = dice.choice(places)
    new = dice.choice(_VALUES)
    if isinstance(holder, dict) and dice.random() < 0.3:
        holder[_HOLE] = 0
        name = json.dumps(key, ensure_ascii=dice.random() < 0.5)
        text = json.dumps(value).replace(f"{json.dumps(_HOLE)}: 0", f"{name}: {new}", 1)
    else:
        holder[key] = _HOLE
        text = json.dumps(value, separators=dice.choice([(",", ":"), None]))
        text = text.replace(json.dumps(_HOLE), new, 1)
    lines[at] = text.encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _places(value: object):
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield from ((node, key) for key in node)
            pending.extend(node.values())
        elif isinstance(node, list):
            yield from ((node, index) for index in range(len(node)))
            pending.extend(node)

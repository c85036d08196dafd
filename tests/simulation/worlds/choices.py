"""Everything that chance decides in a world: drawn from a seed, or told by deviations.

A choice has a place: who draws and for the how-manieth time. Its default is the dullest answer.
What a seed draws otherwise is a deviation; a world is repeated by its deviations alone, so that a
failing one shrinks by leaving some of them out, and those of one actor don't move when another's
are gone.
"""

import random
from collections.abc import Mapping, Sequence

Place = str
"""An actor's name and a number."""
Deviations = dict[Place, int]


class Choices:
    """`deviations` None: by the seed. Else everything is at its default but these."""

    def __init__(self, seed: int, deviations: Mapping[Place, int] | None = None) -> None:
        self._roll = random.Random(seed).random
        self._told = None if deviations is None else dict(deviations)
        self._counts: dict[str, int] = {}
        self.made: Deviations = {}

    def pick(self, actor: str, weights: Sequence[float]) -> int:
        """An index into `weights`, which add up to 1; 0 is the default."""
        count = self._counts.get(actor, 0)
        self._counts[actor] = count + 1
        told = self._told
        if told is not None:
            return min(told.get(f"{actor}:{count}", 0), len(weights) - 1) if told else 0
        left = self._roll()
        if left < weights[0]:
            return 0
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                if index:
                    self.made[f"{actor}:{count}"] = index
                return index
        return 0

    def tell(self, actor: str, index: int) -> None:
        """What the actor's next choice comes to, in a world of deviations."""
        assert self._told is not None, "a seed is told nothing"
        self._told[f"{actor}:{self._counts.get(actor, 0)}"] = index

    def among(self, actor: str, count: int) -> int:
        """One of so many, each as likely; 0 is the default."""
        return self.pick(actor, (1.0 / count,) * count) if count > 1 else 0

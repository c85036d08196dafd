"""How a request goes: through which instance, and what happens to it on its way."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.service.machine.rig import Instance, Rig
from tests.service.machine.wire import Put, die
from tests.service.process.severing import Cut
from tidegate_service.core.observe.faults import Side, Step

COMMIT = b"COMMIT\0"
"""The statement as it is sent; its end tells it from "READ COMMITTED"."""


@dataclass(frozen=True)
class Way:
    """`dies` is the number of a commit's step, of either kind of table, and a side of it. It
    `passes` as often before something happens."""

    instance: str = "a"
    dies: tuple[int, Side] | None = None
    put: Put | None = None
    cut: Cut | None = None
    ndjson: bool = False
    passes: int = 0

    def through(self, rig: Rig, *, managed: bool) -> Instance:
        """The instance, which will meet what there is to meet."""
        instance: Instance = getattr(rig, self.instance)
        instance.script.passes = self.passes
        instance.script.put = instance.script.put if managed else self.put
        if self.dies is not None:
            instance.script.at(self.step(managed=managed), self.dies[1], die)
        if self.cut is not None:
            cut, save = self.cut, Step.M6_COMMIT if managed else Step.O8_INDEX
            instance.script.at(save, Side.BEFORE, lambda: rig.between.watch(COMMIT, cut))
        return instance

    @property
    def fails(self) -> bool:
        """Whether anything happens to those who go this way."""
        return not (self.dies is None and self.put is None and self.cut is None)

    def step(self, *, managed: bool) -> Step:
        assert self.dies is not None
        number = self.dies[0]
        if number == 0:
            return Step.M0_FIND_TABLE
        return Step(f"M{min(number, 7)}" if managed else f"O{number}")

    def dies_after_landing(self, *, managed: bool) -> bool:
        """Whether the commit is ratified by the time that the instance dies."""
        if self.put is not None:
            return self.put is Put.DIED
        assert self.dies is not None
        return self.dies[0] > 6 or self.dies == (6, Side.AFTER)


_instances = st.sampled_from("ab")
safe = st.builds(Way, instance=_instances, ndjson=st.booleans())
_dying = st.builds(
    Way,
    instance=_instances,
    dies=st.tuples(st.sampled_from([6, 7, 8, 5, 4, 3, 2, 1, 0, 9]), st.sampled_from(Side)),
)
losing = st.builds(Way, instance=_instances, put=st.sampled_from(Put))
_cut = st.builds(
    Way,
    instance=st.just("cut"),
    cut=st.sampled_from([Cut.BEFORE_IT_ARRIVES, Cut.BEFORE_THE_ANSWER]),
)
group_ways = st.one_of(
    safe,
    safe,
    st.builds(replace, st.one_of(_dying, losing, _cut), passes=st.sampled_from([0, 0, 1, 2])),
)
any_way = st.one_of(safe, safe, safe, _dying, losing, _cut)


@dataclass(frozen=True)
class Publishing:
    """How a publisher fails."""

    instance: str
    put: Put | None = None
    dies: tuple[Step, Side] | None = None


_steps = st.sampled_from([Step.M8_PUBLISH, Step.M9_MARK_PUBLISHED, Step.M10_FORGET_CONTENT])
publishing = st.one_of(
    st.builds(Publishing, instance=_instances, put=st.sampled_from(Put)),
    st.builds(Publishing, instance=_instances, dies=st.tuples(_steps, st.sampled_from(Side))),
)

"""A failing world, told: what there was in it, what happened, and what is wrong."""

from dataclasses import fields

from tests.chaos.judging.history import Proposed
from tests.simulation.ports.network import CALM, TEMPERS
from tests.simulation.shrink import Failing
from tests.simulation.worlds.plan import Plan
from tests.simulation.worlds.world import World

_NAMES = {CALM: "calm", TEMPERS[1]: "unsteady", TEMPERS[2]: "slow"}


def story(failing: Failing, *, mutation: str | None = None) -> str:
    """Ends with the command that runs the world, and makes it smaller, again."""
    plan = failing.plan
    world = World(plan, failing.deviations)
    world.shared.trace = []
    result = world.run()
    lines = [
        f"Seed {plan.seed} fails, and this is what is left of its world:",
        f"  {_described(plan)}",
        *(f"  client{n}: {task}" for n, task in enumerate(map(_task, plan.tasks))),
        *(f"  before event {step}: {deed.value}" for step, deed in plan.deeds),
        f"  choices that are not the dullest: {failing.deviations or 'none'}",
        "What happens:",
        *(f"  {line}" for line in world.shared.trace),
        "What was told:",
        *(f"  {_told(call)}" for call in result.calls if isinstance(call, Proposed)),
        "What is wrong:",
        *(f"  {v.kind.name}: {v.detail}" for v in result.violations),
        f"Again: python -m tests.simulation --seed {plan.seed} --seeds 1"
        + (f" --without {mutation}" if mutation else ""),
    ]
    return "\n".join(lines)


def _described(plan: Plan) -> str:
    kind = "catalog-managed" if plan.catalog_managed else "plain"
    troubles = [
        f"{name.name} {value}"
        for name in fields(plan)
        if name.name in ("unsynced", "lost_answers", "gateway", "read_s")
        and (value := getattr(plan, name.name))
    ]
    network = _NAMES.get(plan.temper, "unsteady")
    return ", ".join(
        [f"a {kind} table, {plan.instances} instance(s), {network} network", *troubles]
    )


def _task(task: object) -> str:
    shown = [
        f"{one.name} {getattr(task, one.name)}"
        for one in fields(task)  # type: ignore[arg-type]
        if one.name != "kinds" and getattr(task, one.name) not in (0.0, None, False)
    ]
    kinds = ", then ".join(kind.value for kind in task.kinds)  # type: ignore[attr-defined]
    return "; ".join([kinds, *shown])


def _told(call: Proposed) -> str:
    landed = "" if call.version is None else f" as version {call.version}"
    code = f" ({call.code})" if call.code else ""
    return (
        f"{call.sent:10.3f} to {call.answered:10.3f}: {call.work.id} {call.answer.value}"
        f"{landed}{code}"
    )

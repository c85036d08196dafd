"""What a post-commit hook is (docs/hooks.md), and where hooks are found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol

from tidegate_protocol.log.actions import Action
from tidegate_service.core.manifests.in_order import NAME

GROUP = "tidegate.hooks"
"""Entry points of this group name hooks: each is a class, or a function, that makes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCommit:
    """One version of a table as it lies in the table's log.

    `table` is its name and `location` its URL as they are now, `timestamp` is in ms,
    `configuration` the table's properties as of the latest version. The actions are in the order
    of the log, typed; each one's own bytes are its `raw`, those of a very large commit excepted.
    """

    table_id: str
    table: str
    location: str
    version: int
    timestamp: int
    operation: str | None
    transaction_id: str | None
    configuration: Mapping[str, str]
    actions: Sequence[Action]


class Hook(Protocol):
    """Runs on the service's event loop, so whatever waits or computes for long belongs into a
    thread or a process of the hook's own."""

    async def run(self, commit: HookCommit) -> object:
        """Called for one version of a table after the other. Where it raises, the same version
        comes again later, and the table's next ones wait. What it returns is not used."""
        ...


def installed_hooks(names: Iterable[str]) -> tuple[str, ...]:
    """These names, each once. Raises `ValueError` for one that is not installed, or is that of the
    service's own hook."""
    wanted = tuple(dict.fromkeys(names))
    known = sorted(entry_points(group=GROUP).names - {NAME}) if wanted else []
    for name in wanted:
        if name not in known:
            installed = ", ".join(known) or "none"
            raise ValueError(f"there is no hook {name!r}; installed are: {installed}")
    return wanted


def load_hook(name: str) -> Hook:
    """Raises `ValueError` where it cannot be made; the message says why."""
    (found, *_) = entry_points(group=GROUP, name=name)
    try:
        made: Any = found.load()()
    except Exception as error:
        raise ValueError(
            f"the hook {name!r} ({found.value}) cannot be made: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(made, "run", None)):
        raise ValueError(f"the hook {name!r} ({found.value}) has no method `run`")
    hook: Hook = made
    return hook

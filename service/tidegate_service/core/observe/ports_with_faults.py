"""Fault points around the calls of a port: a use case that is given the port need not name them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import iscoroutinefunction
from typing import TypeVar, cast

from tidegate_service.core.observe.faults import NO_FAULTS, AnyStep, FaultPoints, Side, around

P = TypeVar("P")

Method = Callable[..., object]
Awaited = Callable[..., Awaitable[object]]
Entered = Callable[..., AbstractAsyncContextManager[object]]


def with_faults(port: P, faults: FaultPoints, steps: Mapping[Method, AnyStep]) -> P:
    """The port, with fault points on both sides of the calls that `steps` names by the port's own
    methods: `{Log.put_if_absent: Step.O6_PUT}`. Where a method returns an asynchronous context
    manager, the step is to enter the manager.

    Without fault points it is the port itself, so that a commit in production pays nothing.
    """
    if faults is NO_FAULTS:
        return port
    return cast(P, _WithFaults(port, faults, steps))


class _WithFaults:
    def __init__(self, port: object, faults: FaultPoints, steps: Mapping[Method, AnyStep]) -> None:
        self._port = port
        self._faults = faults
        self._methods = {method.__name__: method for method in steps}
        self._steps = steps

    # An attribute has the type that it has at the port, as `with_faults` declares.
    def __getattr__(self, name: str) -> object:
        attribute = getattr(self._port, name)
        method = self._methods.get(name)
        if method is None:
            return attribute
        step = self._steps[method]
        if iscoroutinefunction(method):
            return self._awaiting(step, cast(Awaited, attribute))
        return self._entering(step, cast(Entered, attribute))

    def _awaiting(self, step: AnyStep, method: Awaited) -> Awaited:
        async def call(*args: object, **options: object) -> object:
            async with around(self._faults, step):
                return await method(*args, **options)

        return call

    def _entering(self, step: AnyStep, method: Entered) -> Entered:
        @asynccontextmanager
        async def call(*args: object, **options: object) -> AsyncIterator[object]:
            await self._faults.reached(step, Side.BEFORE)
            async with method(*args, **options) as entered:
                await self._faults.reached(step, Side.AFTER)
                yield entered

        return call

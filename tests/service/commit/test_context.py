"""The world as a request's caller gets it."""

from dataclasses import fields, replace

from tidegate_service.core.access.roles import ANYBODY, Caller
from tidegate_service.core.context import Context


def test_it_is_the_same_but_for_the_caller():
    world = Context(**{field.name: object() for field in fields(Context)})
    caller = Caller(principal=ANYBODY, request_id="r-1")
    theirs = world.called_by(caller)
    assert theirs == replace(world, caller=caller)
    assert theirs.caller is caller
    assert world.caller is not caller

"""Roles and scopes: what they are before anything is asked of them."""

import pytest

from tidegate_service.core.access.roles import (
    Grant,
    InvalidScope,
    Principal,
    Role,
)


def principal(*grants: tuple[str, str]) -> Principal:
    return Principal(name="p", grants=tuple(Grant(Role(role), scope) for role, scope in grants))


class TestScopes:
    @pytest.mark.parametrize(
        "scope",
        [
            "",
            "*.a",
            "a.*",
            "a.b.c.d",
            "a..b",
            ".a",
            "a.",
            "a b",
            "A",
            "a.B",
            "a/b",
            "a\n",
            "ä",
            "**",
        ],
    )
    def test_what_is_none_is_refused(self, scope):
        with pytest.raises(InvalidScope, match="expected"):
            Grant(Role.READER, scope)

    @pytest.mark.parametrize(
        ("scope", "table", "covered"),
        [
            ("*", "main.air.flights", True),
            ("main", "main.air.flights", True),
            ("main", "mainly.air.flights", False),
            ("main", "other.main.flights", False),
            ("main.air", "main.air.flights", True),
            ("main.air", "main.airport.flights", False),
            ("main.air.flights", "main.air.flights", True),
            ("main.air.flights", "Main.AIR.Flights", True),
            ("main.air.flights", "main.air.flights2", False),
            ("main.air.flights", "main.air", False),
            ("main", "main", True),
            ("a_b", "aXb.c.d", False),
        ],
    )
    def test_a_scope_covers_what_lies_in_it(self, scope, table, covered):
        assert Grant(Role.READER, scope).covers(table) is covered


class TestRoles:
    def test_the_widest_grant_counts(self):
        both = principal(("reader", "main"), ("admin", "main.air.flights"))
        assert both.may(Role.ADMIN, "main.air.flights")
        assert both.may(Role.READER, "main.air.other")
        assert not both.may(Role.WRITER, "main.air.other")
        assert not both.may_everywhere(Role.READER)
        assert both.scopes(Role.READER) == ("main", "main.air.flights")

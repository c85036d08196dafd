"""Who asks, and what they may do: roles on everything, a catalog, a schema or a table."""

from dataclasses import dataclass
from enum import StrEnum

from tidegate_service.core.access.names import is_part

EVERYTHING = "*"


class Role(StrEnum):
    """Each may do what those before it may. Readers see tables; writers commit and create
    tables where the warehouse puts them; admins do the rest."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def includes(self, needed: "Role") -> bool:
        return _RANK[self] >= _RANK[needed]


_RANK = {role: rank for rank, role in enumerate(Role)}


class InvalidScope(ValueError):
    """The text is no scope; the message says why."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on a scope: `*`, `catalog`, `catalog.schema` or `catalog.schema.table`, in lower
    case since names are found in any case. Raises `InvalidScope`."""

    role: Role
    scope: str

    def __post_init__(self) -> None:
        parts = self.scope.split(".")
        named = len(parts) <= 3 and all(is_part(part) for part in parts)
        if (self.scope != EVERYTHING and not named) or self.scope != self.scope.lower():
            raise InvalidScope(
                "expected '*', catalog, catalog.schema or catalog.schema.table in lower case, "
                f"found {self.scope[:80]!r}"
            )

    def covers(self, table: str) -> bool:
        """Whether the table of this full name lies in the scope."""
        name = table.lower()
        return self.scope in (EVERYTHING, name) or name.startswith(f"{self.scope}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever a token was made for. Several tokens may be of one principal; their grants are
    their own."""

    name: str
    grants: tuple[Grant, ...]

    def may(self, needed: Role, table: str) -> bool:
        """Whether it has the role on the table of this full name, or on all of a scope; neither
        need exist."""
        return any(grant.role.includes(needed) and grant.covers(table) for grant in self.grants)

    def may_somewhere(self, needed: Role) -> bool:
        return any(grant.role.includes(needed) for grant in self.grants)

    def may_everywhere(self, needed: Role) -> bool:
        return any(
            grant.role.includes(needed) and grant.scope == EVERYTHING for grant in self.grants
        )

    def scopes(self, needed: Role) -> tuple[str, ...] | None:
        """The scopes that it has the role on; None where these are all."""
        if self.may_everywhere(needed):
            return None
        return tuple(sorted({g.scope for g in self.grants if g.role.includes(needed)}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A principal in one of its requests, which has an id where it came over HTTP. `asked_by` is
    whoever made the service itself act, and whose part of all it takes."""

    principal: Principal
    request_id: str | None = None
    asked_by: Principal | None = None

    @property
    def name(self) -> str:
        return self.principal.name

    @property
    def share(self) -> str | None:
        """In whose name it holds its part of what all callers use."""
        return share_of(self.asked_by or self.principal)


ANYBODY = Principal(name="anonymous", grants=(Grant(Role.ADMIN, EVERYTHING),))
"""Everybody, where the service asks nobody who they are."""


def share_of(principal: Principal) -> str | None:
    """In whose name it holds its part of what all callers use (`core.sharing.shares`): nobody's
    where the service asks nobody who they are."""
    return None if principal is ANYBODY else principal.name


ANONYMOUS = Caller(principal=ANYBODY)
"""A caller there, outside any request."""

SERVICE = Caller(principal=Principal(name="tidegate", grants=()))
"""The service itself, in what nobody asked it for."""

OPERATOR = Caller(principal=Principal(name="operator", grants=()))
"""Whoever has the index's own password: the command line, not a request."""

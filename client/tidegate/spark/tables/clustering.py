"""The columns that a table is clustered by, as the service knows them."""

from tidegate.handle import TableHandle
from tidegate.models import Commit
from tidegate.spark.errors import UnsupportedTable
from tidegate_protocol.features.known import CLUSTERING
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import DomainMetadata, Protocol
from tidegate_protocol.log.lines import decode_line
from tidegate_protocol.scan.clustering import CLUSTERING_DOMAIN, Path, physical_paths

_PAGE = 100
_OF_ROWS = frozenset({"DELETE", "MERGE", "OPTIMIZE", "REORG", "UPDATE"})
"""Operations that never write the domain; nor do appends."""
_MODES = {"WRITE": "mode", "STREAMING UPDATE": "outputMode"}
"""The parameter of an operation that says whether it appends."""
_DOMAIN = b'"domainMetadata"'


def clustering_of(table: TableHandle, protocol: Protocol) -> tuple[Path, ...]:
    """Their physical paths, at the latest version. The service is asked where the protocol has the
    feature, and nowhere else. Raises `UnsupportedTable` for a domain that cannot be read, as a
    table that was registered may have."""
    if not supports(protocol, CLUSTERING):
        return ()
    configuration = table.domain(CLUSTERING_DOMAIN)
    return () if configuration is None else _parsed(table, configuration)


def clustering_at(table: TableHandle, version: int, protocol: Protocol) -> tuple[Path, ...]:
    """The same as of a version, whose protocol is given. The service knows the latest domains
    alone; where this one was written since, commits are read from the version on down. Raises as
    `clustering_of` does, and where the commit that wrote it is not there any more."""
    if not supports(protocol, CLUSTERING):
        return ()
    later = table.history(from_version=version + 1)
    if all(_domain_in(table, commit) is None for commit in later):
        return clustering_of(table, protocol)
    before = version
    while before >= 0:
        page = table.history(to_version=before, limit=_PAGE)
        for commit in page:
            domain = _domain_in(table, commit)
            if domain is not None:
                return () if domain.removed else _parsed(table, domain.configuration)
        if not page:
            break
        before = page[-1].version - 1
    if before < 0:
        return ()
    raise UnsupportedTable(
        f"table {table.name} was clustered otherwise at version {version}; expected the commit "
        f"that said by what, found no commits from version {before} down",
        hint="restore or clone a later version, and choose its clustering columns anew",
    )


def _domain_in(table: TableHandle, commit: Commit) -> DomainMetadata | None:
    """The domain, where the commit writes it."""
    mode = commit.operation_parameters.get(_MODES.get(commit.operation or "", ""))
    if commit.operation in _OF_ROWS or (mode == "Append" and commit.version > 0):
        return None
    found = None
    for line in table.commit_bytes(commit.version).split(b"\n"):
        # Few lines are of a domain, and a commit may have a million.
        for action in decode_line(line) if _DOMAIN in line else ():
            if isinstance(action, DomainMetadata) and action.domain == CLUSTERING_DOMAIN:
                found = action
    return found


def _parsed(table: TableHandle, configuration: str) -> tuple[Path, ...]:
    try:
        return physical_paths(configuration)
    except ValueError as error:
        raise UnsupportedTable(
            f"table {table.name}: the metadata domain {CLUSTERING_DOMAIN} cannot be read: {error}",
            hint="set it anew by ALTER TABLE ... CLUSTER BY",
        ) from error

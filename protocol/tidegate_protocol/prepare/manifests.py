"""Symlink manifests and deletion vectors exclude each other (Delta:
`assertTablePropertyConstraintsSatisfied`): who reads a table by its manifests reads whole files.
"""

from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.features.upkeep import SYMLINK_MANIFESTS, writes_manifests
from tidegate_protocol.prepare.table import TableAfter
from tidegate_protocol.proposal.demands import FileDemand
from tidegate_protocol.proposal.transaction import Invalid, ReadState

_FEATURE = "deletionVectors"


def check_manifests(table: TableAfter, *, read: ReadState) -> TableAfter | Invalid:
    """The table after new metadata, with what its manifests ask of its files. A table that another
    writer gave both keeps them: its manifests are not written."""
    if table.own_metadata is None or not writes_manifests(table.metadata.configuration):
        return table
    before = {} if read.metadata is None else read.metadata.configuration
    had = writes_manifests(before)
    if table.properties.deletion_vectors and not (
        had and TableProperties.parse(before).deletion_vectors
    ):
        return Invalid(
            code=Code.INVALID_ACTION,
            detail=f"{SYMLINK_MANIFESTS} and delta.enableDeletionVectors are both true; readers of "
            "the manifests would read deleted rows, so one of them has to go",
        )
    may_have_vectors = read.protocol is not None and supports(read.protocol, _FEATURE)
    if had or not may_have_vectors:
        return table
    return replace(table, demands=(*table.demands, FileDemand.NO_DELETION_VECTORS))

"""The tables that windows of commits are tested on."""

from tests.builders.actions import features, metadata
from tests.builders.ledgers import state
from tidegate_protocol.proposal.transaction import ReadState

WEAK = {"delta.isolationLevel": "WriteSerializable"}
SPARING = {"tidegate.statisticsDisjointness": "true"}
SUPPORTED = ("domainMetadata", "invariants")
BY_X = metadata(["x", "v"], ["x"])
BACKFILL = "ROW TRACKING BACKFILL"

TABLES = {
    "partitioned": (BY_X, features(*SUPPORTED)),
    "weak": (metadata(["x", "v"], ["x"], WEAK), features(*SUPPORTED)),
    "plain": (metadata(["x", "v"]), features(*SUPPORTED)),
    "sparing": (metadata(["x", "v"], (), SPARING), features(*SUPPORTED)),
    "sparing-by-x": (metadata(["x", "v"], ["x"], {**SPARING, **WEAK}), features(*SUPPORTED)),
    "vectors": (
        metadata(["x", "v"], ["x"], {**WEAK, "delta.enableDeletionVectors": "true"}),
        features(*SUPPORTED, readers=["deletionVectors"]),
    ),
    "row-ids": (BY_X, features(*SUPPORTED, "rowTracking")),
}


def at(table: str, version: int = 0) -> ReadState:
    """One of the tables as it is at a version."""
    return state(*TABLES[table], version=version)

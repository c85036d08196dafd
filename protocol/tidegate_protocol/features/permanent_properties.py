"""Table properties that are the table's for ever, and not a version's.

Nothing that brings an older version back, or takes the place of the table, takes them away.
"""

from tidegate_protocol.features.known import UNITY_TABLE_ID
from tidegate_protocol.features.properties import (
    CHECKPOINT_PROTECTION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)

PERMANENT = (CHECKPOINT_PROTECTION, ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN, UNITY_TABLE_ID)

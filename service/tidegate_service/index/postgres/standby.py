"""What has a transaction that only reads wait for the synchronous standby, where there is one.

A primary shows commits that its standby never had: after a crash, and where somebody cancelled the
wait of a COMMIT. Whatever goes out because of them would be wrong where the standby takes over.
"""

from sqlalchemy import text

SEEN = "pg_catalog.pg_logical_emit_message(true, 'tidegate', '')"
"""Has the COMMIT wait until all that the transaction saw is on the standby: such a message is a
write, and nobody has to read it."""

WAIT_FOR_STANDBY = text(f"SELECT {SEEN}")

HAS_STANDBY = text(
    "SELECT pg_catalog.current_setting('synchronous_standby_names') <> '' AS has_standby"
)
"""Whether any COMMIT waits for a standby. Without one, what is seen is what there is."""

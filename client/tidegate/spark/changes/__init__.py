"""The change data feed of a table: which rows its commits inserted, updated and deleted."""

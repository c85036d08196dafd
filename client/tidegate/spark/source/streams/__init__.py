"""Streams through the data source: from a table, and into one."""

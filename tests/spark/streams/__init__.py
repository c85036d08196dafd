"""Streaming queries that write into tables, and drivers of them that are killed."""

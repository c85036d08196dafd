"""Reads, page by page, and the plans that Postgres makes of them."""

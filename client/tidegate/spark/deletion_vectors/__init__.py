"""Deletion vectors: which rows of a data file are no longer rows of the table."""

"""Commits that others wrote to a log."""

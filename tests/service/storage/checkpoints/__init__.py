"""Checkpoint files, read within a budget."""

"""Commits folded into a table's state: commit files, snapshots, and what others wrote."""

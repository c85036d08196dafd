"""Checkpoints: snapshots read as pages of log lines, and what was written of them."""

"""Upkeep of logs: checkpoints."""

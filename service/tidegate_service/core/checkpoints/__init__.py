"""Checkpoints: a table's snapshot as files in its log, written from the index and never by
replaying the log: classic ones, ones in several parts, which use parts of earlier ones again, and
V2 ones. When a checkpoint is due belongs in `core.upkeep`.
"""

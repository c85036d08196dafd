"""Checkpoints: a table's snapshot as files in its log, written from the index and never by
replaying the log. Classic ones, those in several parts, and V2 ones; parts of before are used
again. When one is written is for `core.upkeep`; here is how, and whether the log is the table's.
"""

"""The upkeep of a table's log, so that others can live on it: when checkpoints are due, compacted
files, version checksums, and the clean-up of what has expired. No commit waits for it. Each run may
be cut off at any step, and two instances may do the same one: whatever is left is a log that
readers can read, and the next run begins from what index and log hold.
"""

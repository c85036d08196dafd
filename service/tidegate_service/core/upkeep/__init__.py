"""The upkeep of a table's log, which no commit waits for: checkpoints, version checksums, and the
clean-up of what has expired. Each run begins from what index and log hold, so one that is cut off
is simply done again.
"""

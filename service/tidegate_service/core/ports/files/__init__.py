"""A table's files as the index keeps them: for scans, for VACUUM, and compared with a log."""

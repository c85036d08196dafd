"""Checkpoints of a log, read in bounded memory: Parquet and JSON files, their pages and their rows.
Where the files lie is for `storage.local` and `storage.remote`."""

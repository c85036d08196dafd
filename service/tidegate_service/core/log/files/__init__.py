"""A log's files: commits of any size, checkpoints as streams, and listings. What they mean to the
index belongs in the other rooms of `core.log`."""

"""Logs on a local disk: files that are made durable, listings, the data folder's modes. What holds
of any store is beside this room, not in it."""

"""Logs in an object store, through obstore: files by range, what its errors mean, and what to tell
an operator whose settings are wrong. What holds of any store is beside this room, not in it."""

"""Benches of what is committed: B1 to B5, B7, B9, B11 and B26."""

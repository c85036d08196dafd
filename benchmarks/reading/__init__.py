"""Benches of what is read, and of tables that are large or old: B6, B8, B10 and B12."""

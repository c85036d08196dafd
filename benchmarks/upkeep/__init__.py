"""Benches of what keeps a table in order, such as checkpoints and VACUUM: B13 to B17 and B27."""

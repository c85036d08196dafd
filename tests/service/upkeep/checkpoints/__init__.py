"""Checkpoints: when they are written, of what, in which parts."""

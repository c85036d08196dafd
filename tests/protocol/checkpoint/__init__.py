"""Tests of checkpoints as values."""

"""Tests of the upkeep of logs: when it is due, checkpoints, checksums, clean-up."""

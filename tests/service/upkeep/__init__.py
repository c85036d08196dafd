"""Tests of the upkeep of logs: when it is due, checksums, clean-up."""

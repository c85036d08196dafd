"""Tests of commits and snapshots."""

"""Tests of version checksums as values."""

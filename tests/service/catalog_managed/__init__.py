"""Tests of publishing, failovers, and databases that were set back."""

"""Tests of who is decided with whom, and who waits."""

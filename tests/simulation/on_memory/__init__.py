"""Tests of the index and of the use cases that run a second time over the index in memory."""

"""Tests of the index port, over the index in memory."""

"""Tests of the commit path, over the index in memory."""

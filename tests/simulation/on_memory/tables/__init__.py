"""Tests of tables, their registration and rebuilding, over the index in memory."""

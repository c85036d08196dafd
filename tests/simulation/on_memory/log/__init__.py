"""Tests of logs, over the index in memory."""

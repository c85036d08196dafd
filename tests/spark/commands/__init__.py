"""Tests of the commands, beside the vectors of `tests/spark/dml`."""

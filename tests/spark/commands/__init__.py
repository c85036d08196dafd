"""Tests of the commands that change rows, beside the vectors of `tests/spark/dml`."""

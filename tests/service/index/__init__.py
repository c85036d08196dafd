"""Tests of the index in Postgres."""

"""Tests of predicates, statistics and reads."""

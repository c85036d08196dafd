"""Tests of the benches frame and of the load generator."""

"""Tests of the benches: their frame, their load, the tables that they make."""

"""Tests of the conflict rules, their mutants, and windows."""

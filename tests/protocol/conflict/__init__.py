"""Tests of the conflict rules, and windows."""

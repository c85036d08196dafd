"""Tests of the protocol package: pure."""

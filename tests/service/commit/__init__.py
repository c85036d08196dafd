"""Tests of the way of a proposal."""

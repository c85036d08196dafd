"""Tests of memos."""

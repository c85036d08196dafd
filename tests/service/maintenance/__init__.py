"""Tests of verify and rebuild."""

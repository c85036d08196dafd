"""Tests of types, columns and values."""

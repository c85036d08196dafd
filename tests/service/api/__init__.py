"""Tests of HTTP."""

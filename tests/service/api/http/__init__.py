"""Tests of what is before any route: connections, limits, bodies."""

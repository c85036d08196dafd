"""Tests of creating, registering, scanning and forgetting tables."""

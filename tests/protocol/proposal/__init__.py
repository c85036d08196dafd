"""Tests of isolation and operations."""

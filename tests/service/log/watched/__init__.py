"""Logs over a store that is watched: what is read of it, when, and under which lock."""

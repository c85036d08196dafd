"""Connections: slow, hostile, many, cut off."""

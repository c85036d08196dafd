"""Processes that die at each numbered step."""

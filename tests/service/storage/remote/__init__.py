"""Logs in object stores."""

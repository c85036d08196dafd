"""Logs in local folders."""

"""Calls to the service: when to send again, what to conclude from an answer, and HTTP by httpx."""

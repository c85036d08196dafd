"""Checkpoints (PROTOCOL.md, "Checkpoints" and "Last Checkpoint File"): what a table asks of them,
what their columns hold, and what points to the newest one. Writing them is for the service."""

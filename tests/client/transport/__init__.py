"""The transport, and what stands between a client and its service."""

"""The classes of Delta's Python API, over the service."""

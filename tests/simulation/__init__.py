"""The service's use cases under a seeded scheduler with virtual time (docs/development.md)."""

"""The Tidegate commit coordinator: REST service, index, storage and background work."""

"""The commit index in Postgres: one implementation of `core.ports.index.Index`."""

"""The wall to Postgres: statements, connections, failures."""

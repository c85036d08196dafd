"""Writing a DataFrame into a table in one commit: what it replaces, and what it commits."""

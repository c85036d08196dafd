"""Writing a DataFrame into a table in one commit."""

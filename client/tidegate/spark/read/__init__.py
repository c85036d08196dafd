"""Reading a table as a DataFrame."""

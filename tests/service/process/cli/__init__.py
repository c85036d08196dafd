"""The `tidegate` command, as an operator runs it."""

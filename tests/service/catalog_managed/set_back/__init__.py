"""A database that was set back to an earlier day."""

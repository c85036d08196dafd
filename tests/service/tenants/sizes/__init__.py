"""What one request, table or file may be, for others to commit beside it."""

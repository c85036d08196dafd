"""What waits for publishing, and what became of it."""

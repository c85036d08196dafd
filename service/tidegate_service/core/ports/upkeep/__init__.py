"""What work that no commit waits for needs from the index: which tables are due, and who is at
work."""

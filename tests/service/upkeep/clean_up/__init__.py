"""What is past its retention leaves the log and the index."""

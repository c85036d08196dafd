"""Writing the batches of streaming queries."""

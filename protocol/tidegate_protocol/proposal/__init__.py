"""What a writer proposes: the transaction, its operation, its isolation level."""

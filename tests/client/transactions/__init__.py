"""What a transaction records, proposes, and concludes from answers."""

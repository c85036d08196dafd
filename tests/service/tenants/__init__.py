"""What one tenant can do to the others with what its token allows."""

"""What proposals are told, and that it stays true."""

"""The ports of the service in memory, with what may go wrong on the way to them."""

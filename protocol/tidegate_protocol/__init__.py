"""Delta as values and rules: no I/O, no clock, no randomness, no environment, no logging."""

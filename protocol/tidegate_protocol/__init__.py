"""Delta as values and rules: no I/O, no clock, no randomness, no environment, no logging."""

# A constant, because reading the installed distribution is I/O; a test compares the two.
__version__ = "0.1.0"

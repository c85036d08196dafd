"""`make bench`: what the service does, against the same thing done without it (README.md here)."""

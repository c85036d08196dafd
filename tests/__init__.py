"""Tests, one folder per package under test; helpers are imported as tests.<module>."""

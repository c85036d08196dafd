"""Tests of VACUUM: data files in stores, what goes and what stays, kills."""

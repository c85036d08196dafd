"""Tests of the command line, processes, and what kills them."""

"""Data files as stores list and delete them."""

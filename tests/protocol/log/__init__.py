"""Tests of files of the log as values."""

"""Tests of table features."""

"""Tests of the client without Spark."""

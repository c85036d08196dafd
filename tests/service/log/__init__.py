"""Tests of logs, what others write into them, and late writes."""

"""Tests of what a proposal is checked for before conflicts."""

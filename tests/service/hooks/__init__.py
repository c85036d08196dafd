"""Tests of post-commit hooks: their order, their cursors, and what becomes of failing ones."""

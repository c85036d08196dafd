"""Tests of the repository itself: packaging, documents, migrations."""

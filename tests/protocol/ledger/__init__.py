"""Tests of the ledger, and the vectors that it has to answer."""

"""Tests of who may do what, and the audit trail."""

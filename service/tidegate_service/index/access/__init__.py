"""Tokens and the audit trail in Postgres."""

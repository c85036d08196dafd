"""Proposals that land together."""

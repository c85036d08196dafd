"""Chaos: instances, databases and stores that fail under load, and the judge of what came of it."""

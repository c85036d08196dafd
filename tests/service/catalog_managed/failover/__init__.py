"""A standby becomes the primary, and lacks what had been told."""

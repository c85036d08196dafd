"""The demo: real data, four Spark writers at once, a race, and an independent reader."""

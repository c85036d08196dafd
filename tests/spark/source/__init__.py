"""`format("tidegate")`: reading, writing, and the options of both."""

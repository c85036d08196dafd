"""Load on the service: the generator, which is a process of its own, its plan and its requests."""

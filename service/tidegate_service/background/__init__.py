"""Work that goes on between requests: scans of state, never queues of jobs."""

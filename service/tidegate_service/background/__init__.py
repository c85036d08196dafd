"""Work that goes on between requests: looks at state, never queues of jobs."""

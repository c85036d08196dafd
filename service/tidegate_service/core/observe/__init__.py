"""What is seen of the work: ids of requests, counts and durations, and the fault points that tests
stop at. Where it is sent to belongs in `telemetry` and `logs`.
"""

"""What an operator asks of a table whose index and log may differ: verify, rebuild, forget, end a
quarantine; and whether an instance can work at all.
"""

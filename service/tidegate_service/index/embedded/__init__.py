"""The Postgres that an instance runs by itself where no other was named: its programs, its account,
its server.
"""

"""A proposal's way to its outcome: propose, wait in the queue, be decided in a group, and become a
version. How a version is put into the log belongs in `core.log`; the rules are the protocol's.
"""

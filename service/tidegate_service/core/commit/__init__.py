"""A proposal's way to its outcome: it is proposed, waits in the queue, is decided in a group, and
becomes a version. How a version is put into the log belongs in `core.log`, and the conflict rules
in the protocol.
"""

"""From a proposal to a transaction that may be checked for conflicts, and from a winner to the
bytes of its commit (Delta: prepareCommit, verifyNewMetadata).
"""

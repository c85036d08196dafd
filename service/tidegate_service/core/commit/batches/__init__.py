"""One table's proposals in a group: they are decided one after the other, and land in the way of
the table's kind. What a group's tables share, the queue and the transaction, does not belong here.
"""

"""One table's proposals in a group: they are decided one after the other, and land as its kind of
table has it. What a group's tables share, its queue and its transaction, does not belong here.
"""

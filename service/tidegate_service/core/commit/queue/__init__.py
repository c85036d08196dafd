"""Which proposals wait, and when and with which others each of them is decided. How a group is
decided belongs in `core.commit.group`.
"""

"""Which proposals wait, and when and together with which others each is decided. How a group is
decided belongs in `core.commit.group`.
"""

"""Who calls, and what they may do: roles, tokens, names of tables, places that folders may be in,
and the audit trail. What a place is used for belongs in `core.tables`.
"""

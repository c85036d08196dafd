"""The index's tables in Postgres, as SQLAlchemy knows them. What is written into them belongs in
the rooms that do it.
"""

"""Postgres as a driver is used here: engine, connections, pipelines, parameters, migrations. The
wall behind which speed lives: nothing here knows what a table or a commit is.
"""

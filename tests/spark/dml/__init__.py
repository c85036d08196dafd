"""The command vectors, run through the Spark client against the real service.

A vector (`vectors.py`) makes a target (`target.py`), runs operations on it (`operations/`), and
says what has to come of it (`expect.py`). All four meet in `run.py`, and `test_vectors.py` runs the
vectors on plain and on catalog-managed tables.

To add an operation: write a function `def update(world: World, op: Op) -> None` under
`@operation("update")`, in a module that `operations/writes.py` imports. It works on `world.table`,
raises what the client raises, and leaves in `world.told` what only its result says
(`affected_rows`, `changes`, `stream_rows`), under the name that the expectation has. Vectors that
fail go into `EXPECTED_FAILURES` in `not_yet.py`, each with its reason; one that passes has to be
taken off that list, because it is strict.

A file of vectors is run where `FAMILIES` in `vectors.py` names it.

To add something that is expected: a function in `expect.py` under `@expectation("name")`. A vector
that expects what has none fails.

Vectors count a table's versions from the commit that made the target. Here a table is created empty
and then written to, so that `world.version(n)` is their version n.
"""

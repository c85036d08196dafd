"""Spark SQL predicates: text to something that is evaluated for files.

`dialect`, `lexing` and `parsing` read the text, with `queries` for what stands in it and is not
evaluated; `binding` compiles the tree over a table's columns, with `names` beside it; `values` and
`nodes` are what it is compiled to.
Spark's rules stand by subject in `coercion`, `literals`, `casts`, `datetimes`, `comparison`,
`conditionals`, `arithmetic`, `patterns`, `functions` and `dates`. All of it is used through
`tidegate_protocol.scan.predicates`.
"""

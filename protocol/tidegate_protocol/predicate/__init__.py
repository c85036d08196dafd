"""Spark SQL predicates: text to something that judges files.

`lexing` and `parsing` read the text; `binding` compiles the tree over a table's columns, with
`names` and `forbidden` beside it; `values` and `nodes` are what is compiled to; `coercion`,
`casts`, `comparison`, `arithmetic`, `conditionals`, `patterns`, `functions`, `dates` and
`literals` are Spark's rules by subject. They are used through `tidegate_protocol.predicates`.
"""

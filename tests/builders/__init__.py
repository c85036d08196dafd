"""Actions, proposals and tables in few words, for the tests of every room.

Each action is spelled once, as its line of the log (`lines`); `actions` has the same as values.
`proposals` makes what writers propose, and `ledgers` states and ledgers to propose to. Two tables
serve most tests of the service: `by_x` the use cases and the index, as values, and `flights` the
HTTP API, as bodies. What only one room's tests need is built there.
"""

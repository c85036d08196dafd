"""Coverage-guided fuzzing of what reads others' text: log lines, commits and predicates."""

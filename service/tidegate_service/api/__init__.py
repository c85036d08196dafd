"""HTTP: one router per resource, request and answer types, problems, docs."""

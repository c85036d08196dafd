"""Values to answers: their types, their JSON, and Arrow streams."""

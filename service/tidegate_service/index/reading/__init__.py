"""What is read of the index. Each function is one statement: it sees one state of the database."""

"""The journal: what was seen, meant, done and said, row by row, in SQLite. No decision ever reads it."""

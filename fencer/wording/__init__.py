"""What fencer tells people about a decision: one table for each closed list."""

"""What fencer says to people of a decision, in words: one table for each closed list."""

"""People told without asking: which incidents there are, what is said of each, and to whom it is sent."""

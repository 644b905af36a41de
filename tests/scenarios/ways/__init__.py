"""Every way out that a reason names: in which words, what a person does then, and where that leads."""

"""The pass and the loop: observe, decide, execute, observe again."""

"""Planned stops and starts: what one would hit, in which order, and how it is done."""

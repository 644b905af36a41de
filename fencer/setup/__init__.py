"""Writes or prints what an installation needs."""

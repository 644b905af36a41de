"""Adapters to hypervisors: each package speaks to one kind and knows nothing of the others."""

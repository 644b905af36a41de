"""Evictions: which pods of a node a drain moves, what the API's answers mean, what is asked for next. Pure.

The agent's drains and the part inside the guest share it. So it needs only Python 3.8 and the standard
library, and knows of a pod what `Pod` has.
"""

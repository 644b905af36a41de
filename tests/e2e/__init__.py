"""End to end: fencer beside real control planes, real guests, and real commands.

A package, so that what its tests share ends with its last test in a worker, and not with the worker.
"""

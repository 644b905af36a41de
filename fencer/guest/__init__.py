"""What runs inside a node: `fencer-guest` drains it at shutdown, uncordons it after boot, and checks it.

Standard library only, Python 3.8 or newer, one file (`build`): a node has no virtual environment. It has only
the kubelet's own rights.
"""

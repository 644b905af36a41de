"""Witnesses of a host's power: status only, never an action."""

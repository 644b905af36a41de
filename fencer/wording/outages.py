"""What it means that somebody gives no answer."""

from __future__ import annotations

MEANS = {True: "nothing is fenced until it answers", False: "its nodes are not fenced meanwhile"}
"""What an outage means: of the API server, or of another."""


def without_answer(why: str) -> str:
    """Say that whoever was asked gave no answer that can be used."""
    return why if why.startswith("no answer") else f"no usable answer: {why}"

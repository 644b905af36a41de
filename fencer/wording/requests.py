"""What other controllers ask of fencer, and what they were told, in words."""

from __future__ import annotations

from fencer.core.requests import Request


def standing(request: Request) -> str:
    """Say what is asked, and how that stands.

    Args:
        request: As the API has it.
    """
    about = f"{request} asks for {request.node or 'no node'}: {request.strategy.value}"
    return f"{about}; {_state(request)}"


def _state(request: Request) -> str:
    told = request.told
    if request.deleting:
        return "taken back: it goes once nothing of its fence is left, by an armed agent"
    if told is not None and told.final:
        return f"{'done' if told.succeeded else 'told no'} ({told.reason})"
    if request.given_up:
        return "given up by its owner"
    if request.problem:
        return request.problem
    return "not answered yet" if told is None else f"at work ({told.reason})"

"""What other controllers ask of fencer, and what they were told, in words."""

from __future__ import annotations

from fencer.core.requests import RESERVATIONS, Call, Request


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
        return "taken back; its end waits until the fence is lifted"
    if told is not None and told.final:
        return f"{'done' if told.succeeded else 'told no'} ({told.reason})"
    if request.given_up:
        return "given up by its owner"
    if request.problem:
        return request.problem
    return "not answered yet" if told is None else f"at work ({told.reason})"


def circumstances(call: Call, node: str) -> str:
    """Say who works on a node, or asks for it; empty: nobody.

    Args:
        call: What is asked about it.
        node: Its name.
    """
    words = [f"asked for by {call.by}: {call.strategy.value}"] if call.strategy is not None else []
    words += [f"{call.given_up} was given up by its owner"] if call.given_up else []
    words += [f"{call.reserved_by} holds lease {RESERVATIONS}/node-{node}"] if call.reserved_by else []
    return "; ".join(words)

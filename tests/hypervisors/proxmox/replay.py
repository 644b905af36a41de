"""An API server that answers from a list, for tests of what is made of the answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fencer.hypervisors.proxmox.api import Api, Reply
from fencer.hypervisors.proxmox.errors import ServerUnfit
from fencer.hypervisors.proxmox.server import read_answer

WHERE = "home (https://pve2:8006)"
TOKEN_ID = "fencer@pve!agent"  # noqa: S105 - a name


class ReplayApi:
    """Implements `Api`.

    Args:
        answers: Path → data, an error to raise, or what gives either.
        utc_s: The server's clock.
    """

    def __init__(self, answers: Mapping[str, Any], utc_s: Callable[[], float] = lambda: 1.8e9) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self._utc_s = utc_s

    @property
    def where(self) -> str:
        return WHERE

    def get(self, *path: str, **_params: str | int) -> Reply:
        asked = "/".join(path)
        self.asked.append(asked)
        if asked not in self.answers:
            raise AssertionError(f"nobody prepared an answer to {asked}")
        answer = self.answers[asked]
        answer = answer() if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, self._utc_s())

    def within(self, limit_s: float) -> Api:
        assert limit_s > 0
        return self

    def peers(self) -> Sequence[Api]:
        return ()

    def post(self, *path: str, **params: str | int) -> Reply:
        return self.get(*path, **params)


def as_received(recording: Mapping[str, Any]) -> Any:
    """Return the data of a recorded answer, or raise what the adapter raises for it."""
    path = path_of(recording)
    if recording["status"] is None:
        raise ServerUnfit(f"{WHERE}: no answer: {recording.get('client_exception')}")
    body = recording.get("body")
    raw = (recording.get("body_raw") or "").encode() if body is None else json.dumps(body).encode()
    return read_answer(recording["status"], recording.get("reason") or "", raw, path, WHERE, TOKEN_ID)


def path_of(recording: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what was asked for, split, without parameters."""
    return tuple(recording["request"]["path"].partition("?")[0].removeprefix("/api2/json/").split("/"))

"""A container's preStop hook: what it does, and how long it waits before that, as far as known.

A delay is a sleep that comes first. Commands before it in a script must be known to end nothing: `nginx -s
quit; sleep 5` ends the server at once. Anything not understood is no delay.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from fencer.cluster.fields import expect, mapping, number, sequence, shown, text
from fencer.ports.inventory import Hook

LONGEST_S = 10**9
"""A sleep without an end, in a number that can be added to."""
_LONGEST_SCRIPT = 4096
_SHELLS = frozenset({"sh", "ash", "dash", "bash"})
_HARMLESS = frozenset({":", "true", "date", "echo", "printf", "rm", "set", "touch"})
"""Commands that end no server, as people write them before a sleep."""
_SCRIPT_FOLLOWS = re.compile(r"-[a-z]*c")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)")
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SEPARATORS = frozenset({";", "&&", "||", "&", "|", "|&", ";;"})
_ONE_AFTER_THE_OTHER = frozenset({";", "&&"})


def pre_stop(container: Any) -> Hook | None:
    """Return a container's preStop hook; None: it has none.

    Source: k8s.io/api core/v1, LifecycleHandler; kubernetes pkg/kubelet/lifecycle/handlers.go.
    """
    hook = mapping(container, "lifecycle", "preStop")
    place = ("lifecycle", "preStop")
    if "sleep" in hook:
        seconds = number(container, *place, "sleep", "seconds") or 0
        delay_s = float(min(max(seconds, 0), LONGEST_S))
        return Hook(shown(f"sleep {delay_s:g}"), delay_s)
    if "exec" in hook:
        words = sequence(container, *place, "exec", "command")
        command = [expect(word, str, "lifecycle.preStop.exec.command[]") for word in words]
        return Hook(shown(shlex.join(command)), _delay_s(command))
    if "httpGet" in hook:
        return Hook(shown(f"GET {text(container, *place, 'httpGet', 'path') or '/'}"), None)
    return Hook(shown(", ".join(hook)), None) if hook else None


def _delay_s(command: Sequence[str]) -> float | None:
    match [_program(word) if place == 0 else word for place, word in enumerate(command)]:
        case ["sleep", *durations]:
            return _together_s(durations)
        case [shell, *options] if shell in _SHELLS:
            return _scripted_s(_script(options))
        case _:
            return None


def _scripted_s(script: str) -> float | None:
    for words, separator in _commands(script):
        program, *rest = words[1:] if words[:1] == ["exec"] and len(words) > 1 else words
        if _program(program) == "sleep":
            return None if separator == "&" else _together_s(_without_redirections(rest))
        runs_another = any(mark in word for word in words for mark in "(`")
        if _program(program) not in _HARMLESS or runs_another or separator not in _ONE_AFTER_THE_OTHER:
            return None
    return None


def _script(options: Sequence[str]) -> str:
    """Return the script that a shell is given among its options; empty: none."""
    for place, option in enumerate(options):
        if _SCRIPT_FOLLOWS.fullmatch(option):
            return "".join(options[place + 1 : place + 2])
        if not option.startswith("-"):
            break
    return ""


def _commands(script: str) -> Iterator[tuple[list[str], str]]:
    """Yield each command's words, and what follows it; none of a script too long, or with an open quote."""
    lines = script.replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(lines, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        tokens = [*lexer, ";"] if len(script) <= _LONGEST_SCRIPT else []
    except ValueError:
        return
    words: list[str] = []
    for token in tokens:
        if token not in _SEPARATORS:
            words.append(token)
        elif words:
            yield words, token
            words = []


def _without_redirections(words: Sequence[str]) -> Sequence[str]:
    """Leave out what begins with a redirection, and the number of the file that it redirects."""
    first = next((place for place, word in enumerate(words) if set(word) & set("<>")), None)
    if first is None:
        return words
    numbered = first > 1 and words[first - 1].isdecimal()
    return words[: first - 1 if numbered else first]


def _together_s(durations: Sequence[str]) -> float | None:
    """Add up the arguments of `sleep`; None: not understood; `sleep` itself may refuse them."""
    found = [_DURATION.fullmatch(word) for word in durations]
    if not found or None in found:
        return None
    total_s = sum(float(one[1]) * _UNITS_S[one[2]] for one in found if one)
    return min(total_s, float(LONGEST_S))


def _program(word: str) -> str:
    return word.rpartition("/")[2]

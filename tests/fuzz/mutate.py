"""Input that was right once: texts and JSON with pieces cut, doubled, swapped, or put in from elsewhere."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hypothesis import strategies as st

HANGS_AFTER_S = 20.0
"""Of CPU, for one input of some kilobytes."""

ODD = (
    *(
        "",
        "\0",
        "\x1b[2J",
        "\ufeff",
        "\u2028",
        "\u202e",
        "\ud800",
        "é",
        "\U0001f600",
        "٣",
        "\r",
        "\r\n",
        "\t",
        "\n",
    ),
    *("null", "~", "true", "-1", "0", "1e999", "NaN", "9" * 30, "5s", "[]", "{}", "[[", "}", "{a: }", "<<: "),
    *(
        "*x",
        "&x 1",
        "!!binary =",
        "%YAML 9.9",
        "|",
        ">-",
        "'",
        '"',
        "\\",
        "- ",
        "? ",
        ": ",
        "#",
        "---",
        "...",
    ),
    *("=", "[Login]", "https://[", "//a:b@", "../", "/", "{" * 200, "[" * 2000, "- " * 2000, "a: " * 200),
)


@st.composite
def texts(draw: Callable[..., Any], seeds: Sequence[str]) -> str:
    """Draw a text near one of the seeds."""
    text: str = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 5))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 40)))
        piece = text[begin:end]
        new = draw(st.sampled_from([*ODD, piece * 2, piece[::-1], ""]) | st.text(max_size=8))
        text = text[:begin] + new + text[end:]
    return text


def raw(seeds: Sequence[str]) -> st.SearchStrategy[bytes]:
    """Draw bytes: near a seed, or any."""
    return texts(seeds).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=200)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(ODD) | st.text(max_size=12)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def near(draw: Callable[..., Any], seeds: Sequence[Any]) -> Any:
    """Draw JSON near one of the seeds: a few of its values, wherever they are, are others, or are gone."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        data = _changed(draw, data)
    return data


def _changed(draw: Callable[..., Any], data: Any) -> Any:
    if not isinstance(data, dict | list) or not data or draw(st.integers(0, 9)) == 0:
        return draw(values)
    if isinstance(data, list):
        at = draw(st.integers(0, len(data) - 1))
        return [*data[:at], _changed(draw, data[at]), *data[at + draw(st.integers(0, 1)) :]]
    key = draw(st.sampled_from(list(data)))
    if draw(st.integers(0, 5)) == 0:
        return {name: value for name, value in data.items() if name != key}
    return {**data, key: _changed(draw, data[key])}


class Hangs(BaseException):
    """More CPU than any reader needs; no reader can take it for an error of its own."""


@contextmanager
def no_hang() -> Iterator[None]:
    """End what computes for ever."""

    def over(*_: object) -> None:
        raise Hangs(f"more than {HANGS_AFTER_S:g} s of CPU")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, HANGS_AFTER_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)

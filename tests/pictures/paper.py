"""What all drawn pictures share: colours for light and dark, words that are shown, and the SVG around them.

A picture is an image on a forge: no script, nothing from elsewhere, no element of HTML. It has a ground of
its own, so that it can be read where page and reader disagree on the mode. Colours are classes with plain
values: a viewer that knows no mode shows the light ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import fencer.report

ROOT = Path(__file__).parents[2]
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_VALUE = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")
_USED = re.compile(r'class="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Tone:
    """A colour, on light pages and on dark ones."""

    light: str
    dark: str


def _of_the_report() -> Mapping[str, Tone]:
    """Read the colours of the incident report: pictures of fencer look alike."""
    sheet = (Path(fencer.report.__file__).parent / "templates" / "style.css").read_text("utf-8")
    light, _, rest = sheet.partition("@media (prefers-color-scheme: dark)")
    dark = dict(_VALUE.findall(rest.partition("\n}\n")[0]))
    return {name: Tone(value, dark[name]) for name, value in _VALUE.findall(light)}


TONES: Mapping[str, Tone] = {
    **_of_the_report(),
    "red": Tone("#b3261e", "#ff8d83"),
    "green": Tone("#176b31", "#6fd990"),
    "yellow": Tone("#7a5200", "#f0c15e"),
    "blue": Tone("#1c5dbb", "#86bcff"),
    "magenta": Tone("#7a3fc4", "#cba6ff"),
    "cyan": Tone("#0b6a75", "#6fd3de"),
    "soft": Tone("#b6d4fe", "#24497a"),
}
"""By their names. ``on-good`` is for words on ``good``; the six of a terminal are for words on ``page``."""


def shown(text: str) -> str:
    """Return a text as it stands in a picture."""
    return escape(text, {'"': "&quot;"})


def words(text: str, x: float, y: float, tone: str = "ink", **more: object) -> str:
    """Return a line of words.

    Args:
        text: The words.
        x: Where they begin; see ``text_anchor``.
        y: Their base line.
        tone: Their colour.
        more: Attributes; ``_`` stands for ``-``.
    """
    told = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text class="{tone}" x="{x:g}" y="{y:g}"{told}>{shown(text)}</text>'


def svg(
    name: tuple[str, str],
    size: tuple[float, float],
    drawn: Iterable[str],
    *,
    font_px: float = 12,
    style: str = "",
) -> str:
    """Return a whole picture.

    Args:
        name: Its title, and what is to be seen, for those who do not see it.
        size: Width and height.
        drawn: Its elements. A class that is a tone fills with it; ``line-`` before the tone strokes instead.
        font_px: Of words that do not say their own.
        style: Rules of its own; what they name must be in it.
    """
    (title, about), (width, height) = name, size
    ground = f'<rect class="page" width="{width:g}" height="{height:g}" rx="8"/>'
    body = [ground, *drawn]
    used = sorted({one for found in _USED.findall("\n".join(body)) for one in found.split()})
    rules = [f"text {{ font-family: {FONT}; font-size: {font_px:g}px }}", *_rules(used, dark=False)]
    rules += ["@media (prefers-color-scheme: dark) {", *_rules(used, dark=True), "}", *style.splitlines()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="title about">',
            f'<title id="title">{shown(title)}</title>',
            f'<desc id="about">{shown(about)}</desc>',
            "<style>",
            *rules,
            "</style>",
            *body,
            "</svg>",
            "",
        ]
    )


def _rules(used: Iterable[str], *, dark: bool) -> Iterable[str]:
    for name in used:
        lines, tone = name.startswith("line-"), TONES.get(name.removeprefix("line-"))
        if tone is not None:
            yield f".{name} {{ {'stroke' if lines else 'fill'}: {tone.dark if dark else tone.light} }}"

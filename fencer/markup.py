"""HTML out of templates: what others have named is text in it, and visible."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined

from fencer.core.text import printable


def rendering(package: str, name: str, **named: object) -> Callable[..., str]:
    """Return what makes a page of a template.

    Args:
        package: The room, with a folder ``templates``.
        name: The template's.
        named: What all templates of that room may use.
    """
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(named)
    return environment.get_template(name).render


def _visible(value: object) -> object:
    """Escape what a reader cannot see, as on a terminal; markup of the templates' own passes."""
    return value if hasattr(value, "__html__") else printable(str(value))

"""The list `maintenance:` of the configuration: when `fencer watch` begins nothing by itself."""

from typing import Annotated, Any

from pydantic import create_model, model_validator

from fencer.config.keys import Section, key
from fencer.core.maintenance import Window

_KEYS: dict[str, Any] = {
    "days": (
        Annotated[
            list[str] | None,
            key(
                "On which days it begins: weekdays (mon, tue, wed, thu, fri, sat, sun), or dates, such as "
                "2026-12-24. Absent: every day.",
                example=["sat", "sun"],
            ),
        ],
        None,
    ),
    "from": (Annotated[str, key("When it begins, in local time, in quotes.", example="22:00")], ...),
    "to": (
        Annotated[
            str,
            key("When it ends, up to 24:00, in quotes. Not after `from`: on the next day.", example="02:00"),
        ],
        ...,
    ),
    "zone": (
        Annotated[str, key("The time zone of these times, by its name.", example="Europe/Berlin")],
        ...,
    ),
    "nodes": (
        Annotated[
            list[str] | None,
            key("For which nodes: names, with * and ? as in a shell. Absent: all.", example=["k8s-*"]),
        ],
        None,
    ),
    "why": (
        Annotated[str | None, key("Why, for people.", example="backups of all guests")],
        None,
    ),
}
_Fields = create_model("_Fields", __base__=Section, **_KEYS)


# One of its keys is a word of Python: no code uses a key by name.
class MaintenanceSection(_Fields):  # type: ignore[valid-type, misc]  # the class is made above
    """A maintenance window: `fencer watch` begins nothing by itself, what a person types goes on."""

    @model_validator(mode="after")
    def _is_a_window(self) -> "MaintenanceSection":
        self.window()
        return self

    def window(self) -> Window:
        """Return the section as a setting for the rest of fencer.

        Raises:
            ValueError: there can be no such window.
        """
        written = {name: getattr(self, name) for name in _KEYS}
        return Window(
            begins=written["from"],
            ends=written["to"],
            zone=written["zone"],
            days=tuple(written["days"] or ()),
            nodes=tuple(written["nodes"] or ()),
            why=(written["why"] or "").strip(),
        )

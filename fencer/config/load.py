"""From a file to a checked `Config`: every error at once, each with its line."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from fencer.config.complaints import complaints
from fencer.config.contradictions import contradictions
from fencer.config.document import MAX_BYTES, Document, Problem, parse, refusal
from fencer.config.notify_section import NotifySection
from fencer.config.policy_section import PolicySection
from fencer.config.schema import File, JournalSection
from fencer.config.settings import (
    MB,
    Bounds,
    Config,
    HookSettings,
    JournalSettings,
    usual_journal,
    usual_state,
    usual_told,
)
from fencer.config.web_section import WebSection
from fencer.core.text import printable
from fencer.errors import ConfigError, unreadable

EMPTY = (
    "the file is empty, or all of it is commented out: start from what `fencer setup config` prints, "
    "which explains every key"
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A correct file, with what `fencer.config.show` needs.

    Attributes:
        config: What the rest of fencer gets.
        document: What was written, and where.
        file: The same by the schema, with defaults.
    """

    config: Config
    document: Document
    file: File


def load(path: Path) -> Config:
    """Read and check the configuration.

    Args:
        path: The YAML file.

    Raises:
        ConfigError: it cannot be read or is not right; the text has one line a problem, each with the file
            and, where there is one, the line.
    """
    return load_document(path).config


def load_document(path: Path) -> Loaded:
    """Read and check the configuration, and keep the place of every value.

    Raises:
        ConfigError: as `load`.
    """
    return check(parse(content(path), str(path)))


def check(document: Document) -> Loaded:
    """Check a parsed file and turn it into settings.

    Raises:
        ConfigError: as `load`.
    """
    if document.root is None and not document.problems:
        raise refusal(document.name, (Problem(None, EMPTY),))
    try:
        file = File.model_validate(document.root)
    except ValidationError as error:
        problems = complaints(error.errors(include_url=False), document)
        wrong = {str(place[0]) for place in (detail["loc"] for detail in error.errors()) if place}
        raise refusal(
            document.name, (*document.problems, *problems, *contradictions(document, wrong))
        ) from None
    if problems := (*document.problems, *contradictions(document, frozenset())):
        raise refusal(document.name, problems)
    file = _with_files(file, Path(document.name))
    return Loaded(_config(file), document, file)


def content(path: Path) -> bytes:
    """Return what is in the file; of one that is too large, enough to see that.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(unreadable(str(path), error)) from error
    except ValueError as error:
        raise ConfigError(f"{printable(str(path))}: cannot be read: {error}") from error


def _config(file: File) -> Config:
    nodes = {name: _split(guest) for name, guest in (file.nodes or {}).items()}
    policy = (file.policy or PolicySection()).policy(file.mode)
    return Config(
        policy=replace(policy, maintenance=tuple(one.window() for one in file.maintenance or ())),
        kubernetes=file.kubernetes.settings(),
        endpoints=tuple(section.endpoint() for section in file.hypervisors),
        nodes=MappingProxyType(nodes),
        hook=HookSettings(file.hook.pre_stop, file.hook.budget_s) if file.hook else HookSettings(),
        journal=_journal(file.journal or JournalSection()),
        state_file=Path(file.state_file) if file.state_file else None,
        notify=(file.notify or NotifySection()).settings(),
        web=(file.web or WebSection()).settings(),
    )


def _with_files(file: File, path: Path) -> File:
    """Name fencer's own files where the configuration does not: their places depend on its own."""
    journal, notify = file.journal or JournalSection(), file.notify or NotifySection()
    own_journal = {"file": journal.file or str(usual_journal(path))}
    own_told = {"told_file": notify.told_file or str(usual_told(path))}
    return file.model_copy(
        update={
            "journal": journal.model_copy(update=own_journal),
            "state_file": file.state_file or str(usual_state(path)),
            "notify": notify.model_copy(update=own_told),
        }
    )


def _journal(written: JournalSection) -> JournalSettings | None:
    bounds = Bounds(written.keep_days, int(written.max_mb * MB))
    return JournalSettings(Path(written.file or ""), bounds) if written.enabled else None


def _split(guest: str) -> tuple[str, str]:
    endpoint, _, name = guest.partition("/")
    return endpoint, name

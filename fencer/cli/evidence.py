"""What goes into a support bundle: each part asked for, written as its command writes it, and sieved."""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from fencer.cli import check as checking
from fencer.cli import status as showing
from fencer.cli import version
from fencer.cli.asking import asking
from fencer.cli.explain import story
from fencer.cli.judged import locally
from fencer.cli.output import emit
from fencer.cli.render import clean, say, say_file, table
from fencer.cli.roll_call import call_roll
from fencer.cli.wire import Parts, Quiet, Wiring, connected, log_plainly
from fencer.config.redact import Redacted, redact
from fencer.config.settings import Config
from fencer.core.model import Judged
from fencer.core.text import listing, printable
from fencer.errors import ConfigError, FencerError
from fencer.hypervisors.adapters import installed
from fencer.preflight.agent import CONFIGS, unit_of
from fencer.preflight.collect import collect
from fencer.preflight.facts import ClusterFacts, Facts
from fencer.preflight.judge import judge
from fencer.preflight.report import Report
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import API
from fencer.support.sieve import Sieve
from fencer.wording.conditions import problems_first

TOOL_S = 10.0
"""For systemctl and journalctl."""
EVERY_NODE = showing.Asked(None, None, None, every=True, form="wide", clock=False)
HISTORY = timedelta(days=7)
ROWS_CHARS = 2 << 20
LOG_LINES = 1000
LOG_BYTES = 2 << 20
UNIT_KEYS = (
    "Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "NRestarts", "StatusText",
    "ActiveEnterTimestamp", "InactiveEnterTimestamp", "ExecMainStartTimestamp", "ExecMainExitTimestamp",
    "ExecMainCode", "ExecMainStatus", "MemoryCurrent", "CPUUsageNSec", "User", "FragmentPath", "DropInPaths",
)  # fmt: skip
"""Of a unit's properties; not its environment, and not its command."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Makes the parts. Each raises `FencerError` if it cannot be made.

    Attributes:
        wiring: Builds what is asked.
        path: Of the configuration.
        config: It; an error: why there is none that holds.
        written: What may be shown of it; an error: why it cannot be read.
        sieve: Everything passes it.
    """

    wiring: Wiring
    path: Path
    config: Config | ConfigError
    written: Any | ConfigError
    sieve: Sieve

    def config_written(self) -> Sequence[str]:
        """Return the configuration as it is written, read and written anew, without comments."""
        if isinstance(self.written, ConfigError):
            raise self.written
        return (_printed(lambda: emit(self.sieve.data(self.written), "yaml")),)

    def config_in_force(self) -> Sequence[str]:
        """Return every key in force."""
        from fencer.config.show import show_redacted  # noqa: PLC0415 - pydantic and YAML

        self._loaded()
        return (self.sieve.text(_printed(lambda: say_file(show_redacted(self.path)))),)

    def versions(self) -> Sequence[str]:
        """Return what is installed here, as a table and as JSON."""
        table_ = _printed(lambda: version.show(self.path, "table"))
        data = _printed(lambda: version.show(self.path, "json"))
        return self.sieve.text(f"{table_}\n{_printed(lambda: _lines(_system()))}"), data

    def check(self) -> Sequence[str]:
        """Return the check as a table and as JSON, and who answered."""
        config = self._loaded()
        with asking((API, *(endpoint.name for endpoint in config.endpoints)), self.wiring.clock().now_s):
            facts = collect(self.path, config, self.wiring, Quiet())
        report = Report(self.path, config.policy.mode, tuple(judge(facts)))
        return (
            self.sieve.text(_printed(lambda: checking.show(report, "table"))),
            _printed(lambda: emit(self.sieve.data(report.data()), "json")),
            self.sieve.text(_printed(lambda: _lines([*_answers(facts)]))),
        )

    def status(self) -> Sequence[str]:
        """Return all nodes by one look: the table, the same as JSON, and each one explained."""
        self._loaded()
        with connected(self.wiring, self.path) as parts:
            view = showing.View(self.wiring, parts, EVERY_NODE)
            seen, called = view.look(), call_roll(parts)
            nodes = problems_first([called.with_loop(one) for one in seen.judged.values()])
            data = self.sieve.data(showing.data(parts, seen, nodes, called))
            return (
                self.sieve.text(_printed(lambda: view.write(seen, nodes, called))),
                _printed(lambda: emit(data, "json")),
                self.sieve.text(_printed(lambda: self._explain(parts, seen, nodes))),
            )

    def _explain(self, parts: Parts, seen: Pass, nodes: Sequence[Judged]) -> None:
        zone = self.wiring.wall().tzinfo
        for judged in nodes:
            for line in story(parts, locally(judged, zone), seen.scene.errors):
                say(line)
            say()

    def history(self) -> Sequence[str]:
        """Return what happened in the last days: told, and the rows of the journal."""
        self._loaded()
        told, rows = _history(self.wiring, self.path)
        return self.sieve.text(told), _newest(map(self.sieve.data, rows))

    def unit(self) -> Sequence[str]:
        """Return the state of the unit whose agent reads the configuration."""
        return (
            self._told("systemctl", "show", self._unit(), "--no-pager", f"--property={','.join(UNIT_KEYS)}"),
        )

    def log(self) -> Sequence[str]:
        """Return the last lines of its log."""
        words = ("-u", self._unit(), "-n", str(LOG_LINES), "--no-pager", "-o", "short-iso")
        return (self._told("journalctl", *words),)

    def _told(self, *words: str) -> str:
        said = self.wiring.tool(*words, deadline_s=TOOL_S, most_bytes=LOG_BYTES)
        return _printed(lambda: say_file(self.sieve.text(said)))

    def _unit(self) -> str:
        unit = unit_of(self.path)
        if unit is None:
            raise ConfigError(f"no unit of fencer's reads this configuration: they read {CONFIGS}/*.yaml")
        return f"{unit}.service"

    def _loaded(self) -> Config:
        if isinstance(self.config, ConfigError):
            raise self.config
        return self.config


def read(wiring: Wiring, path: Path) -> Evidence:
    """Read the configuration, and the secrets that must not get through.

    Args:
        wiring: Builds what is asked.
        path: Of the configuration.
    """
    from fencer.support import secrets  # noqa: PLC0415 - pydantic and YAML

    log_plainly()
    redacted, wrong, config = Redacted(), None, None
    try:
        redacted = _redacted(path)
    except ConfigError as error:
        wrong = error
    files = {Path(name) for name in redacted.files}
    try:
        config = wiring.load(path)
        files.update(wiring.secrets(config), config.optional_secrets)
    except ConfigError as error:
        # That of a file that could not be parsed may repeat anything that stands in it.
        refused = wrong or error
    known = {*secrets.in_files(files), *secrets.in_environment(os.environ)}
    sieve = Sieve(known, redacted.lost, redacted.shown)
    return Evidence(wiring, path, config or refused, wrong or redacted.root, sieve)


def _redacted(path: Path) -> Redacted:
    """Read what may be shown of a configuration.

    Raises:
        ConfigError: it cannot be read; nothing that stands in it is repeated.
    """
    from fencer.config.document import parse  # noqa: PLC0415 - YAML
    from fencer.config.load import content  # noqa: PLC0415 - pydantic and YAML

    written = content(path)
    try:
        return redact(parse(written, str(path)).root)
    except ConfigError as error:
        line = str(error).removeprefix(f"{printable(str(path))}:").partition(":")[0]
        where = f", see line {line}" if line.isdigit() else ""
        raise ConfigError(
            f"{path}: not a configuration{where}. `fencer config check` says why; nothing of it is in here, "
            "because secrets cannot be told from the rest"
        ) from error


def _history(wiring: Wiring, path: Path) -> tuple[str, Iterator[Any]]:
    """Return what the journal tells of the last days: for people, and its newest rows, the newest first."""
    from fencer.cli.history import show_list, show_one  # noqa: PLC0415 - SQLite and pydantic
    from fencer.cli.looking_back import journal_of, row_data, rows  # noqa: PLC0415 - the same
    from fencer.journal.folding import incidents  # noqa: PLC0415 - the same

    entries, zone = [*rows(journal_of(wiring, path))], wiring.looking_back()
    lately = [one for one in incidents(entries) if one.last >= zone - HISTORY]

    def tell() -> None:
        show_list(lately, zone)
        for incident in (one for one in reversed(lately) if one.worth_telling):
            say()
            show_one(incident, zone, "table")

    told = _printed(tell) if lately else f"nothing happened in the last {HISTORY.days} days.\n"
    return told, (row_data(one) for one in reversed(entries) if one.at >= zone - HISTORY)


def _newest(rows: Iterable[Any]) -> str:
    """Return rows as JSON, one a line and the oldest first; of many, the newest."""
    lines, size = list[str](), 0
    for row in rows:
        line = json.dumps(row)
        size += len(line)
        if size > ROWS_CHARS:
            break
        lines.append(f"{line}\n")
    return "".join(reversed(lines))


def _printed(write: Callable[[], None]) -> str:
    """Return what is written to stdout meanwhile, as into a file: not wrapped to a terminal, no colours."""
    with redirect_stdout(io.StringIO()) as page:
        write()
    return page.getvalue()


def _lines(rows: Iterable[Sequence[str]]) -> None:
    for line in table([*rows]):
        say(line)


def _system() -> Iterator[Sequence[str]]:
    try:
        yield "system", clean(platform.freedesktop_os_release().get("PRETTY_NAME", "not told"))
    except OSError:
        yield "system", "not told"
    yield "kernel", clean(platform.platform())
    yield "other adapters", listing(sorted(installed())) or "none"


def _answers(facts: Facts) -> Iterator[Sequence[str]]:
    """Yield who answered, as they describe themselves."""
    if isinstance(facts.cluster, ClusterFacts):
        info = facts.cluster.info
        yield API, clean(info.version), clean(f"{info.server}, as {info.user}, cluster {info.uid}")
    else:
        yield API, "no answer", clean(facts.cluster)
    for name, told in facts.endpoints.items():
        if isinstance(told, FencerError):
            yield clean(name), "no answer", clean(told)
        else:
            yield (
                clean(name),
                clean(f"{told.kind} {told.version}"),
                clean("; ".join((told.detail, *told.problems, *told.remarks))),
            )

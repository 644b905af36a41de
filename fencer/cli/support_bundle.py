"""``fencer support-bundle``: one archive with what a helper needs to know, and no secret."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from fencer.cli.evidence import Evidence, read
from fencer.cli.options import READ_LATER, config_option
from fencer.cli.render import clean, say, table, tell
from fencer.cli.wire import Wiring
from fencer.core.text import count
from fencer.errors import FencerError
from fencer.setup.files import require_folder_of
from fencer.support import archive

FOLDER = "fencer-support"
README = "README.txt"
MOST_CHARS = 4 << 20
"""Of one file: `fencer explain` of 5,000 nodes has less."""

LEFT_OUT = """\
What was left out
  Files with credentials (tokens, passwords, keys, the kubeconfig): their content is not in here. fencer
  looked into them only to take what stands there out of everything else.

  The configuration shows only what is known to be harmless. "(left out)" stands for the rest: settings of
  other packages' adapters, options of fence agents that could be secret, parameters of URIs, words of
  commands, contexts, unusual paths, and keys that fencer does not know. Comments are dropped.

  From errors of servers, findings, history and log, every secret that fencer knows on this machine is taken
  out, whole or in part, and what else looks like one: "(left out)" stands there, too.

  Environment variables are not in here.

What is in here all the same
  Names and addresses: of nodes, guests, hosts, namespaces, pods, volumes, and of the users as whom fencer
  connects; and the reasons that people typed.
"""
ADVICE = (
    "Look through it before you send it: only you know what must stay private. It has the names and "
    "addresses of your nodes, guests and hosts."
)


@dataclass(frozen=True, slots=True)
class Part:
    """Some files of the bundle that come of one question.

    Attributes:
        files: File → what it is, for people.
        make: Returns their content, in that order.
    """

    files: Mapping[str, str]
    make: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Made:
    """A file of the bundle.

    Attributes:
        name: Its name.
        tells: What it is, for people.
        text: Its content.
        missing: Why there is nothing in it; None: there is.
    """

    name: str
    tells: str
    text: str
    missing: str | None = None


@click.command(
    "support-bundle",
    short_help="Pack what a helper needs into one file, without secrets.",
    epilog="\b\nExamples:\n  fencer support-bundle\n  fencer support-bundle -o /tmp/fencer.tar.gz",
)
@config_option
@click.option(
    "-o",
    "--output",
    "output",
    type=READ_LATER,
    metavar="FILE",
    help="The archive, a new file.  [default: fencer-support-HOST-TIME.tar.gz, here]",
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.pass_obj
def support_bundle(wiring: Wiring, path: Path, output: Path | None, *, force: bool) -> None:
    """Pack what somebody who helps you needs to know into one archive, and no secret.

    In it: the configuration without secrets, versions, `fencer check`, `status` and `explain` for every node,
    the history, the unit's state and log. What does not answer is missing in it, with the reason.

    It changes nothing, and sends nothing: look through the file, and send it yourself.
    """
    if output == Path("-"):
        raise click.UsageError("-o -: look through it before anybody gets it: name a file")
    now = wiring.wall()
    name = f"{FOLDER}-{wiring.host()}-{now:%Y%m%d-%H%M%S}.tar.gz"
    output = Path(name) if output is None else output
    if not force:
        archive.require_new(output)
    require_folder_of(output)
    evidence = read(wiring, path)
    made = [*_made(_parts(evidence), evidence)]
    head = f"Support bundle of fencer, made on {clean(wiring.host())}, {now:%Y-%m-%d %H:%M:%S %Z}"
    texts = {README: _readme(head, made), **{one.name: one.text for one in made}}
    packed = archive.pack(FOLDER, texts, now.timestamp())
    archive.write(output, packed, force=force)
    _tell(output, len(packed), made)


def _parts(evidence: Evidence) -> Iterator[Part]:
    yield Part({"config-written.yaml": "the configuration as it is written"}, evidence.config_written)
    yield Part(
        {"config-in-force.yaml": "every key in force, and where it came from"}, evidence.config_in_force
    )
    versions = {"versions.txt": "what is installed here", "versions.json": "the same for programs"}
    yield Part(versions, evidence.versions)
    check = {
        "check.txt": "`fencer check`",
        "check.json": "the same for programs",
        "endpoints.txt": "Kubernetes and the hypervisors, as they describe themselves",
    }
    yield Part(check, evidence.check)
    status = {
        "status.txt": "`fencer status`",
        "status.json": "the same for programs",
        "explain.txt": "`fencer explain` for every node",
    }
    yield Part(status, evidence.status)
    history = {
        "history.txt": "`fencer history` of the last days, each incident step by step",
        "history.jsonl": "the newest rows of the journal, one a line",
    }
    yield Part(history, evidence.history)
    yield Part({"unit.txt": "the state of fencer's unit under systemd"}, evidence.unit)
    yield Part({"log.txt": "the last lines of its log"}, evidence.log)


def _made(parts: Iterable[Part], evidence: Evidence) -> Iterator[Made]:
    """Make every part; what cannot be made says why in its place."""
    for part in parts:
        try:
            texts = part.make()
        except FencerError as error:
            yield from _missing(part, evidence.sieve.text(str(error)))
        except Exception:  # noqa: BLE001 - a mistake in fencer costs one part, and is what a helper looks for
            yield from _missing(part, evidence.sieve.text(f"a mistake in fencer: {traceback.format_exc()}"))
        else:
            yield from (_bounded(*told) for told in zip(part.files.items(), texts, strict=True))


def _missing(part: Part, why: str) -> Iterator[Made]:
    first = next(iter(part.files))
    for name, tells in part.files.items():
        text = "{}\n" if name.endswith(".json") else f"missing: {why}\n"
        yield Made(name, tells, text, why if name == first else f"see {first}")


def _bounded(file: tuple[str, str], text: str) -> Made:
    name, tells = file
    if len(text) <= MOST_CHARS:
        return Made(name, tells, text)
    why = f"{len(text) - MOST_CHARS} more characters are left out: it is too large"
    if name.endswith(".json"):  # half of it nobody could read
        return Made(name, tells, "{}\n", why)
    return Made(name, f"{tells} (the beginning)", f"{text[:MOST_CHARS]}\n({why})\n")


def _readme(head: str, made: Sequence[Made]) -> str:
    rows = [[one.name, one.tells] for one in made if one.missing is None]
    lost = [[one.name, " ".join(clean(one.missing).split())] for one in made if one.missing is not None]
    missing = ["", "What is missing", *table(lost, indent=2)] if lost else []
    lines = [head, "", "What is in here", *table(rows, indent=2), *missing, "", LEFT_OUT]
    return "\n".join(lines)


def _tell(output: Path, size: int, made: Sequence[Made]) -> None:
    rows = [[README, "what is in it, and what was left out"]]
    for one in made:
        why = None if one.missing is None else clean(one.missing.splitlines()[0])
        rows.append([one.name, one.tells if why is None else f"missing: {why}"])
    for line in table(rows, indent=2):
        say(line)
    shown = (
        f"{clean(output)}: {count(len(rows), 'file')}, {-(-size // 1024)} KB, for your eyes only (mode 0600)"
    )
    say(click.style(shown, bold=True))
    tell(ADVICE)

"""Replays transcripts: what happens in a simulated world, commands, and all that they say.

A line that begins with ``>`` lets something happen; one that begins with ``$`` runs a command, and what
follows up to ``[code]`` is its output. Everything else is for the reader. Lines to let happen::

    > world armed [TRAIT…]                         a new world; `observe` instead of `armed`
                                                 nodes=4, hosts=pve1,pve2, control-plane=3 (so many),
                                                 no-power, person, careless
    > mode observe                                 the mode is changed in its configuration
    > watched 30                                   30 s pass while an agent watches
    > pass 70                                      70 s pass
    > power_off k8s-2                              any fault of `simulation.faults.What`, and its target
    > after 12 start k8s-2                         the same, in 12 s from now
    > budget StatefulSet/db 7                    a budget: so many of its pods must stay Ready
    > always-allow                             budgets let pods go that are not Ready
    > service web                                a Service leads to that workload
    > local data-db-0 k8s-1                      the volume of that claim is on that node only
    > hook web nginx -s quit                     its pods have this preStop hook
    > crashing web 17                            its pods are in a crash loop, started again so often
    > tolerating Deployment/web                  no cordon keeps its pods off
    > finalizer StatefulSet/db example.com/hold  its pods have this finalizer
    > grace Deployment/web 0                     its pods may take so long to end
    > may-not list services                      a right is taken away
    > unread-budget demo/odd: spec: …            a budget that cannot be read, and why
    > prints systemctl ActiveState=active          a program of this machine, and what it prints
    > journal journal.db                           a journal is kept, in that file
    > says y                                       what the person answers to the next command

The commands run in a folder of their own. The size of a file is written as N KB: it depends on versions.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from fencer.cluster import hooks
from fencer.core.policy import Mode, Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.web.settings import WebSettings
from tests.cli.lab import Lab

_CODE = re.compile(r"\[\d+\]")
_SIZE = re.compile(r"\b\d+ KB\b")


class Replay:
    """One transcript's world, and the commands in it."""

    def __init__(self) -> None:
        self._lab = Lab()
        self._answer: str | None = None

    def replay(self, text: str) -> str:
        """Return the transcript as it comes out now."""
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            return "\n".join(self._lines(text.splitlines())) + "\n"

    def _lines(self, lines: list[str]) -> Iterator[str]:
        in_output = False
        for line in lines:
            if in_output:
                in_output = not _CODE.fullmatch(line)
                continue
            yield line
            if line.startswith("> "):
                self._happen(*line[2:].split())
            elif line.startswith("$ fencer"):
                in_output = True
                result = self._lab.run(*shlex.split(line)[2:], says=self._answer)
                self._answer = None
                yield from _SIZE.sub("N KB", result.output).splitlines()
                yield f"[{result.exit_code}]"

    def _happen(self, what: str, *words: str) -> None:
        match what:
            case "world":
                self._lab = _world(*words)
            case "mode":
                self._lab.policy = replace(self._lab.policy, mode=Mode(words[0]))
            case "watched":
                self._lab.passes(float(words[0]), watched=True)
            case "pass":
                self._lab.passes(float(words[0]))
            case "prints":
                self._lab.tools[words[0]] = f"{' '.join(words[1:])}\n"
            case "journal":
                self._lab.journal = Path(words[0])
            case "says":
                self._answer = f"{' '.join(words)}\n"
            case "after":
                self._lab.breaks(What(words[1]), *words[2:], in_s=float(words[0]))
            case _ if not self._furnish(what, *words):
                self._lab.breaks(What(what), *words)

    def _furnish(self, what: str, *words: str) -> bool:
        """Add to the cluster what only a drain or its plan meets; whether that was meant."""
        world = self._lab.simulation
        match what:
            case "budget":
                self._lab.budget(words[0], int(words[1]))
            case "always-allow":
                world.api.budgets[:] = [replace(one, always_allow=True) for one in world.api.budgets]
            case "service":
                world.surveyor.services.append(words[0])
            case "local":
                world.surveyor.local[words[0]] = words[1]
            case "may-not":
                world.cluster.missing.add(" ".join(words))
            case "unread-budget":
                world.surveyor.unread_budgets.append(" ".join(words))
            case _:
                return self._shape(what, *words)
        return True

    def _shape(self, what: str, *words: str) -> bool:
        """Change what a plan says of the pods of a workload; whether that was meant."""
        world = self._lab.simulation
        match what:
            case "hook":
                hook = hooks.pre_stop({"lifecycle": {"preStop": {"exec": {"command": list(words[1:])}}}})
                assert hook is not None
                world.surveyor.hooks[words[0]] = hook
            case "crashing":
                world.surveyor.crashing[words[0]] = int(words[1])
            case "tolerating":
                for pod in world.api.pods_of(words[0]):
                    pod.tolerates_cordon = True
            case "finalizer":
                for pod in world.api.pods_of(words[0]):
                    pod.finalizers = (words[1],)
            case "grace":
                for pod in world.api.pods_of(words[0]):
                    pod.grace_s = float(words[1])
            case _:
                return False
        return True


def _world(mode: str, *traits: str) -> Lab:
    given = dict(trait.split("=") for trait in traits if "=" in trait)
    names = tuple(f"k8s-{number + 1}" for number in range(int(given.get("nodes", "3"))))
    lab = Lab(
        Policy(mode=Mode(mode)),
        power="no-power" not in traits,
        person_there="person" in traits,
        strict="careless" not in traits,
        shape=Shape(nodes=names, hosts=tuple(given.get("hosts", "lab1").split(","))),
    )
    lab.web = WebSettings()
    for name in names[: int(given.get("control-plane", "0"))]:
        lab.simulation.api.nodes[name].roles = ("control-plane",)
    return lab

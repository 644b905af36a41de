"""Which Leases a configuration needs: each of its hypervisors is asked who it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencer.cli.options import DEFAULT_CONFIG
from fencer.cli.render import clean, complain
from fencer.cli.wire import Wiring, is_missing
from fencer.config.settings import Config
from fencer.core.text import count
from fencer.errors import ConfigError, FencerError
from fencer.ports import EndpointInfo
from fencer.runtime.election import name_of
from fencer.setup.leases import HypervisorLease


@dataclass(frozen=True, slots=True)
class Told:
    """What the hypervisors of a configuration said.

    Attributes:
        leases: Of those that said who they are, in the order of the configuration.
        silent: Endpoint → why it is not known who it is.
    """

    leases: tuple[HypervisorLease, ...] = ()
    silent: Mapping[str, FencerError | str] = field(default_factory=dict)


def told_by(wiring: Wiring, path: Path) -> Told | None:
    """Ask all hypervisors of a configuration who they are; None: there is no configuration yet.

    Args:
        wiring: Builds the way to them.
        path: The configuration.

    Raises:
        ConfigError: it is not right, or one that was named is not there.
    """
    try:
        config = wiring.load(path)
    except ConfigError:
        if path == DEFAULT_CONFIG and is_missing(path):
            return None
        raise
    silent: dict[str, FencerError | str] = {}
    leases: dict[str, HypervisorLease] = {}
    for endpoint, answer in _described(wiring, config).items():
        if isinstance(answer, FencerError) or answer.identity is None:
            silent[endpoint] = answer if isinstance(answer, FencerError) else "; ".join(answer.problems)
            continue
        name = name_of(endpoint, answer)
        known = leases.get(name) or HypervisorLease(name, answer.identity or f"named {endpoint}", ())
        leases[name] = replace(known, endpoints=(*known.endpoints, endpoint))
    return Told(tuple(leases.values()), silent)


def complain_of_silence(told: Told | None, command: str) -> None:
    """Say on stderr whose Lease is not printed, and what to do.

    Args:
        told: What they said; None: there is no configuration.
        command: What to run again.
    """
    if told is None:
        complain(
            "only the Lease of the cluster is printed: those of hypervisors need a configuration. Once there "
            f"is one: {command}; until then no agent gives a power order"
        )
        return
    for endpoint, error in told.silent.items():
        complain(f"{clean(endpoint)}: {error}")
    if told.silent:
        complain(
            f"{count(len(told.silent), 'hypervisor')} did not say who it is, and its Lease is not printed: "
            f"{', '.join(map(clean, told.silent))}. Once it answers, run the same again; until then no agent "
            "gives it a power order"
        )


def _described(wiring: Wiring, config: Config) -> dict[str, EndpointInfo | FencerError]:
    """Ask all endpoints at once, in the order of the configuration."""
    clock, deadline_s = wiring.clock(), config.policy.call_deadline_s
    answers: dict[str, EndpointInfo | FencerError] = {}
    with ExitStack() as open_ones:
        calls = {}
        for endpoint in config.endpoints:
            try:
                port = open_ones.enter_context(closing(wiring.hypervisor(endpoint, clock)))
                calls[endpoint.name] = port.describe
            except FencerError as error:
                answers[endpoint.name] = error
        answers |= wiring.asker(clock, deadline_s).ask_all(calls, deadline_s)
    return {endpoint.name: answers[endpoint.name] for endpoint in config.endpoints}

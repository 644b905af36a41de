"""pytest's side of it: ``pytest --adapter=NAME`` runs the contract on the adapter that an entry point names.

Alone, the option stands for the whole of `fencer.contract.suite`; paths and node ids that are typed beside it
are taken instead. What a lab cannot do is said at the end, whatever else is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    "fencer.contract.backstage", "fencer.contract.hypervisor", "fencer.contract.others"
)

SUITE = Path(__file__).with_name("suite.py")
LEFT_OUT = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--adapter``."""
    parser.getgroup("fencer").addoption(
        "--adapter",
        metavar="NAME",
        help="run fencer's contract on the adapter NAME (an entry point of the group fencer.hypervisors)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have the suite collected where nothing else is named."""
    config.addinivalue_line(
        "markers", "needs(ability): takes what a lab of fencer's contract may be unable to do"
    )
    config.stash[LEFT_OUT] = {}
    if config.getoption("adapter") and config.args_source is not config.ArgsSource.ARGS:
        config.args = [str(SUITE)]


@pytest.hookimpl(hookwrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end what the adapter was not held to, each with why."""
    yield
    config: pytest.Config = terminalreporter.config
    for ability, why in config.stash[LEFT_OUT].items():
        terminalreporter.write_line(
            f"not shown of {config.getoption('adapter')}: {ability}: {why}", yellow=True
        )

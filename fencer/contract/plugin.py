"""pytest's side of it: ``pytest --adapter=NAME`` runs the contract on the adapter that an entry point names.

It stands for the whole of `fencer.contract.suite`, beside whatever paths are typed; node ids of the suite are
taken instead of the whole. What a lab cannot do is said at the end, whatever else is shown.

``--adapter`` is a common name, and this plugin is there wherever fencer is installed. So it is taken only if
nobody else has it, no conftest.py either; ``--fencer-adapter`` is there in any case. And nothing else of
fencer is imported here, before any measuring of coverage begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from fencer.contract import GROUP

pytest.register_assert_rewrite(
    "fencer.contract.backstage", "fencer.contract.hypervisor", "fencer.contract.others"
)

SUITE = Path(__file__).with_name("suite.py")
SHORT, LONG = "--adapter", "--fencer-adapter"
NAME = "fencer_adapter"
"""Where pytest keeps the name of the adapter."""
LEFT_OUT = "fencer: left out"
"""A property of tests, which also comes from the processes of other plugins that run them."""
_TAKEN = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that nobody else has."""
    _add(parser, LONG)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> Iterator[None]:
    """Add the short one once everybody else has had their turn."""
    yield
    early_config.stash[_TAKEN] = _is_taken(parser)
    if not early_config.stash[_TAKEN]:
        _add(parser, SHORT)


def pytest_configure(config: pytest.Config) -> None:
    """Have the suite collected, unless tests of it are named."""
    config.addinivalue_line(
        "markers", "fencer_needs(ability): takes what a lab of fencer's contract may be unable to do"
    )
    if config.getoption(NAME) and not any(_is_of_the_suite(config, typed) for typed in config.args):
        typed = config.args if config.args_source is config.ArgsSource.ARGS else []
        config.args = [*typed, str(SUITE)]


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end what the adapter was not held to, each with why; and if nothing of all this was run."""
    yield
    config: pytest.Config = terminalreporter.config
    skipped = terminalreporter.stats.get("skipped", ())
    properties = [each for report in skipped for each in report.user_properties]
    for ability, why in dict(said for name, said in properties if name == LEFT_OUT).items():
        terminalreporter.write_line(f"not shown of {config.getoption(NAME)}: {ability}: {why}", yellow=True)
    if meant := _meant(config):
        terminalreporter.write_line(
            f"fencer's contract was not run on {meant}: {SHORT} is an option of another plugin or "
            f"conftest.py here. Type {LONG}={meant}",
            yellow=True,
        )


def _add(parser: pytest.Parser, option: str) -> None:
    parser.getgroup("fencer").addoption(
        option,
        dest=NAME,
        metavar="NAME",
        help="run fencer's contract on the adapter NAME (an entry point of the group fencer.hypervisors)",
    )


def _is_taken(parser: pytest.Parser) -> bool:
    """Whether somebody else has the short option: it is tried, as what is known by name is not public."""
    try:
        return not parser.parse_known_and_unknown_args([f"{SHORT}=NAME"])[1]
    except pytest.UsageError:  # Theirs takes no names.
        return True


def _is_of_the_suite(config: pytest.Config, typed: str) -> bool:
    """Whether a node id or path that was typed is the suite's, also as ``--pyargs`` has it."""
    place = typed.partition("::")[0]
    return place == "fencer.contract.suite" or (config.invocation_params.dir / place).resolve() == SUITE


def _meant(config: pytest.Config) -> str | None:
    """Return an adapter that was named by an option of somebody else's, which looks like ours."""
    taken = config.stash.get(_TAKEN, False) and not config.getoption(NAME)
    typed = config.getoption("adapter", None) if taken else None
    return typed if isinstance(typed, str) and entry_points(group=GROUP, name=typed) else None

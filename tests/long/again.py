"""A plugin of pytest that runs each test many times: ``./dev test -p tests.long.again --again 30 PATH…``."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Ask how often."""
    parser.addoption("--again", type=int, default=1, metavar="N", help="run each test N times")


@pytest.hookimpl(trylast=True)  # so that a table's rows are told apart first
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make N tests of each."""
    times = metafunc.config.getoption("again")
    if times > 1:
        metafunc.fixturenames.append("time_of_many")
        metafunc.parametrize("time_of_many", range(times), ids=lambda time: f"time{time + 1}")

"""Ways to load text as if it were a file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fencer.config.load import load
from fencer.config.settings import Config
from fencer.errors import ConfigError
from tests.support.adapters import install_example, on_path


@pytest.fixture
def cells(tmp_path: Path) -> Iterator[None]:
    """Have the example adapter installed: its type is cells."""
    with on_path(*install_example(tmp_path / "site-packages")):
        yield


@pytest.fixture
def load_text(tmp_path: Path) -> Callable[[str], Config]:
    """Load a text from a file."""

    def load_it(text: str) -> Config:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        return load(file)

    return load_it


@pytest.fixture
def problems_of(load_text, tmp_path) -> Callable[[str], list[str]]:
    """Load a text that is wrong, and return the error's lines without the directory."""

    def ask(text: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load_text(text)
        assert caught.value.exit_code == 2
        return str(caught.value).replace(f"{tmp_path}/", "").splitlines()

    return ask

"""The contract can fail: each mistake of `cell_mutants` is found by the test that is there for it."""

import ast
import re
from pathlib import Path

import pytest

from fencer.contract import lab
from fencer.hypervisors import adapters
from tests.contract.strangers import pytest_on
from tests.support.adapters import EXAMPLE, install

pytestmark = pytest.mark.slow  # a pytest for each mistake

HERE = Path(__file__).parent
MODULE = "cell_mutants"


def mutants() -> dict[str, str]:
    """Each mutant with the test that has to find it, from the source: it cannot be imported from here."""
    tree = ast.parse((HERE / f"{MODULE}.py").read_text())
    return {
        node.name: mark.args[0].value
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for mark in node.decorator_list
    }


MUTANTS = mutants()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What has to be on the path: the mutants as adapters, each with the example's lab."""
    points = {
        adapters.GROUP: {name: f"{MODULE}:{name}.ADAPTER" for name in MUTANTS},
        lab.GROUP: dict.fromkeys(MUTANTS, f"{MODULE}:ImpatientLab"),
    }
    return [install(tmp_path_factory.mktemp("site"), "mutants", points), EXAMPLE, HERE]


@pytest.mark.parametrize(("mutant", "test"), MUTANTS.items(), ids=list(MUTANTS))
def test_the_contract_finds(tmp_path, installed, mutant, test):
    name, _, variant = test.rstrip("]").partition("[")
    words = ("-q", "-x", "--tb=line", "-rf", "-k", f"{name} and {variant or name}")
    done = pytest_on(mutant, tmp_path, installed, *words, alone=True)
    assert re.search(rf"^FAILED .*::{re.escape(test)}", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.TESTS_FAILED

"""The example adapter keeps the contract, as its author would see it; and what is said where nothing runs."""

import re

import pytest

from fencer.contract import lab
from fencer.contract.needs import ABILITIES
from fencer.hypervisors import adapters
from tests.contract.strangers import pytest_on
from tests.support.adapters import EXAMPLE, install, install_example

pytestmark = pytest.mark.slow  # a pytest for each

CELLS = "fencer_cells:ADAPTER"
LAB = "fencer_cells.lab:CellLab"
GUIDE = EXAMPLE.parent / "adapters.md"


@pytest.fixture
def package(tmp_path):
    """Installs a package with these entry points and this source beside the example's modules."""

    def made(points, source=""):
        folder = install(tmp_path / "site", "somebodys", points)
        (folder / "somebodys.py").write_text(source)
        return [folder, EXAMPLE]

    return made


def test_the_example_keeps_the_contract(tmp_path):
    done = pytest_on("cells", tmp_path / "here", install_example(tmp_path))
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    ending = re.findall(r"^not shown of .*|\d+ passed, \d+ skipped", done.stdout, re.MULTILINE)
    assert [line.partition(": ")[2].partition(":")[0] for line in ending[:-1]] == [
        "save",
        "records",
        "events",
    ]
    assert "\n".join(f"    {line}" for line in ending) in GUIDE.read_text(), "as docs/adapters.md shows it"


def test_the_guide_names_all_that_a_lab_may_lack():
    named = set(re.findall(r"`(\w+)`", GUIDE.read_text()))
    assert set(ABILITIES) - named == set()


def test_a_test_can_be_named(tmp_path):
    done = pytest_on("cells", tmp_path / "here", install_example(tmp_path), "-k", "shuts_down", "-v")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_path_that_is_typed_beside_it_is_taken_instead(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    (here / "test_own.py").write_text("def test_own(): pass\n")
    done = pytest_on("cells", here, install_example(tmp_path), "test_own.py")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_the_option_nothing_of_it_is_run(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "test_own.py").write_text("def test_own(): pass\n")
    done = pytest_on("", tmp_path / "here", install_example(tmp_path))
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("points", "source", "said"),
    [
        (
            {},
            "",
            "0 installed packages bring a lab called vm, by an entry point of the group fencer.labs",
        ),
        ({lab.GROUP: {"other": LAB}}, "", "group fencer.labs; there is other"),
        (
            {lab.GROUP: {"vm": "somebodys:lab"}},
            "def lab(folder): return folder",
            "somebodys:lab made no",
        ),
        (
            {lab.GROUP: {"vm": "somebodys:Lab"}},
            "from fencer_cells.lab import CellLab\nclass Lab(CellLab): cannot = {'fly': 'no wings'}",
            f"somebodys:Lab: `cannot` names fly; known: {', '.join(ABILITIES)}",
        ),
        (
            {lab.GROUP: {"vm": LAB}},
            "",
            "lab: no installed package brings an adapter of type vm (there is none at",
        ),
        (
            {lab.GROUP: {"vm": LAB}, adapters.GROUP: {"vm": "somebodys:nothing"}},
            "",
            "lab: the adapter of type vm by somebodys 1.0 cannot be loaded from somebodys:nothing",
        ),
    ],
)
def test_what_is_missing_is_said_once_and_nothing_is_run(tmp_path, package, points, source, said):
    done = pytest_on("vm", tmp_path / "here", package(points, source))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert (done.stdout + done.stderr).count(said) == 1


def test_what_a_lab_lacks_without_a_word_is_a_failure_that_says_so(tmp_path, package):
    source = "from fencer_cells.lab import CellLab\nclass Lab(CellLab): cannot = {}\n"
    points = {lab.GROUP: {"vm": "somebodys:Lab"}, adapters.GROUP: {"vm": CELLS}}
    done = pytest_on("vm", tmp_path / "here", package(points, source), "-k", "a_saved_guest_is_not_stopped")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "write it, or say why not in cannot['save']" in done.stdout

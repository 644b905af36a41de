"""The example adapter keeps the contract, as its author would see it; and what is said where nothing runs."""

import re
import subprocess
import sys

import pytest

from fencer.config.keys import OWN_TYPES
from fencer.contract import lab
from fencer.contract.needs import ABILITIES
from fencer.contract.plugin import SUITE
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


def test_what_is_left_out_is_said_by_several_processes_too(tmp_path):
    words = ("-n", "2", "-k", "saved_guest")
    done = pytest_on("cells", tmp_path / "here", install_example(tmp_path), *words)
    assert done.stdout.count("not shown of cells: save: cells have no memory on disk") == 1, done.stdout


def test_the_guide_names_all_that_a_lab_may_lack():
    named = set(re.findall(r"`(\w+)`", GUIDE.read_text()))
    assert set(ABILITIES) - named == set()


def test_the_guide_has_the_words_that_the_contract_looks_for_in_errors():
    sources = "".join(path.read_text() for path in SUITE.parent.glob("*.py"))
    looked_for = re.findall(r'match="([^"]+)"', sources)
    assert looked_for
    assert [words for words in looked_for if f'"{words}"' not in GUIDE.read_text()] == []


def test_a_test_can_be_named(tmp_path):
    done = pytest_on("cells", tmp_path / "here", install_example(tmp_path), "-k", "shuts_down", "-v")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.fixture
def here(tmp_path):
    """A folder with a test of somebody's own."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "test_own.py").write_text("def test_own_description(): pass\n")
    return folder


WHO_IT_IS = "test_it_says_who_it_is"
OWN_AND_OURS = ("-k", f"{WHO_IT_IS} or own_description", "-v")


def test_the_contract_is_run_beside_a_path_that_is_typed(tmp_path, here):
    done = pytest_on("cells", here, install_example(tmp_path), "test_own.py", *OWN_AND_OURS)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert f"{WHO_IT_IS} PASSED" in done.stdout


@pytest.mark.parametrize("named", ["path", "module"])
def test_a_test_of_the_contract_that_is_named_is_run_alone(tmp_path, here, named):
    place = {"path": str(SUITE), "module": "fencer.contract.suite"}[named]
    words = ("--pyargs", f"{place}::TestAdapter::{WHO_IT_IS}", "test_own.py")
    done = pytest_on("cells", here, install_example(tmp_path), *words)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_name_may_follow_the_option_and_be_that_of_a_folder(tmp_path, here):
    (here / "cells").mkdir()
    done = pytest_on(None, here, install_example(tmp_path), "--adapter", "cells", "-k", WHO_IT_IS)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_brings_nothing_else_of_fencer_along():
    """It is loaded before coverage begins to count: whatever came with it had been run by no test."""
    tell = "import sys, fencer.contract.plugin; print(*(name for name in sys.modules if 'fencer' in name))"
    done = subprocess.run([sys.executable, "-c", tell], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"fencer", "fencer.contract", "fencer.contract.plugin"}


THEIRS = "def pytest_addoption(parser): parser.addoption('--adapter', {})\n"


@pytest.mark.parametrize("kind", ["default=None", "dest='theirs'", "type=int", "action='store_true'"])
@pytest.mark.parametrize("by", ["conftest", "plugin"])
def test_somebody_elses_option_of_that_name_is_left_to_them(tmp_path, here, kind, by):
    path = [here, *install_example(tmp_path)]
    (here / f"{by}.py").write_text(THEIRS.format(kind))
    plugins = ("-p", "plugin") if by == "plugin" else ()
    done = pytest_on(None, here, path, *plugins, "test_own.py")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    done = pytest_on(None, here, path, *plugins, "--fencer-adapter=cells", "test_own.py", *OWN_AND_OURS)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_whoever_means_ours_is_told_how_to_say_so(tmp_path, here):
    (here / "conftest.py").write_text(THEIRS.format("default=None"))
    path = install_example(tmp_path)
    done = pytest_on("cells", here, path, "-q")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "fencer's contract was not run on cells: --adapter is an option of another" in done.stdout
    assert "Type --fencer-adapter=cells" in done.stdout
    done = pytest_on("theirs", here, path, "-q")
    assert "fencer" not in done.stdout


def test_a_marker_of_somebody_elses_is_none_of_ours(tmp_path, here):
    marked = "import pytest\n@pytest.mark.needs('more')\ndef test_own_description(): pass\n"
    (here / "test_own.py").write_text(marked)
    done = pytest_on(None, here, install_example(tmp_path), "--strict-markers")
    assert "'needs' not found in `markers`" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", OWN_TYPES)
def test_a_name_that_no_configuration_finds_is_refused(tmp_path, package, name):
    done = pytest_on(
        name, tmp_path / "here", package({lab.GROUP: {name: LAB}, adapters.GROUP: {name: CELLS}})
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert f"{name} is a type of fencer's own" in done.stdout + done.stderr


def test_fencers_own_types_are_those_of_the_configuration():
    assert adapters.OWN_TYPES == OWN_TYPES


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
            {lab.GROUP: {"vm": "somebodys:lab"}},
            "import nothing_of_that_name\ndef lab(folder): pass",
            "the lab somebodys:lab cannot be made: ModuleNotFoundError: No module named 'nothing_of_that",
        ),
        (
            {lab.GROUP: {"vm": "somebodys:lab"}},
            "def lab(folder): raise RuntimeError('no /dev/kvm')",
            "the lab somebodys:lab cannot be made: RuntimeError: no /dev/kvm (",
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

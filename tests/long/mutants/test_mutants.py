"""Faults put into code: which there are, that tests find them, and which are explained."""

import gc
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache

import pytest

from fencer.core import fleet, proof
from fencer.core.fitness import Fitness
from tests.long.mutants import page
from tests.long.mutants.__main__ import PARTS, ROOT, main, shown, table
from tests.long.mutants.explained import Explained, outdated, read, unexplained
from tests.long.mutants.faults import faults_in as find_faults
from tests.long.mutants.forks import BROKEN, end_with, in_fork
from tests.long.mutants.runner import AlreadyFailing, Measured, NotTried, Runner, _Chosen, _found

faults_in = cache(find_faults)
HEAD = '"""A module."""\n'


def faults(tmp_path, source):
    """Return the faults of some lines, as ``(place, before, after)``."""
    (tmp_path / "some.py").write_text(f"{HEAD}{source}\n")
    return {(fault.place, fault.before, fault.after) for fault in find_faults(tmp_path, "some.py")}


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("if a < b: pass", {"if a <= b: pass", "if True: pass", "if False: pass"}),
        ("x = a and b", {"x = True and b", "x = False and b", "x = a and True"}),
        ("x = a or b", {"x = True or b", "x = False or b", "x = a or False"}),
        ("x = a or 0.0", {"x = False or 0.0"}),
        ("x = not a", {"x = not True", "x = not False"}),
        ("x = 2", {"x = 3", "x = 1"}),
        ("x = 40.0", {"x = 80.0", "x = 20.0"}),
        ("x = True", {"x = False"}),
        ("x = a - b", {"x = a + b", "x = (a)"}),
        ("x = max(a, b)", {"x = min(a, b)", "x = max(a, )"}),
        ("x = f(a, b=c)", {"x = f(a, )"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if True]", "x = [a for a in b if False]"}),
        ("f(x)", {"pass"}),
        ("x = (a, b)", {"x = (b)", "x = (a, )"}),
        ("x = {a: b}", {"x = {}"}),
        ("x = a if b else c", {"x = a if True else c", "x = a if False else c"}),
    ],
)
def test_what_is_changed(tmp_path, source, after):
    assert {changed for _, _, changed in faults(tmp_path, source)} == after


@pytest.mark.parametrize(
    "source",
    [
        '"""A text."""',
        'x = "a word"',
        'x = f"{a:.2f}"',
        'x = "one" if a else "none"',
        "x: Literal[3]",
        "from a import b",
        "@cache(maxsize=3)\ndef f(): ...",
        "def __str__(self): return 3",
        'x = ("record", a)',
        "match a:\n    case _:\n        assert_never(a)",
        "if TYPE_CHECKING:\n    from a import b",
    ],
)
def test_wording_annotations_and_decorators_are_left_alone(tmp_path, source):
    assert faults(tmp_path, source) == set()


def test_a_fault_is_named_by_its_place_and_its_lines(tmp_path):
    found = faults(
        tmp_path,
        "LIMIT = 3\nclass A:\n    def f(self):\n        return (\n a\n < b\n        )\n",
    )
    assert ("LIMIT", "LIMIT = 3", "LIMIT = 4") in found
    assert ("A.f", "< b", "<= b") in found
    assert {place for place, _, _ in found} == {"LIMIT", "A.f"}


def test_what_is_in_a_body_is_told_from_what_is_there_from_the_start(tmp_path):
    (tmp_path / "some.py").write_text(f"{HEAD}def f(a=1):\n    return 3\n")
    inside = {fault.after: fault.function for fault in find_faults(tmp_path, "some.py")}
    assert inside["return 4"] == "f"
    assert inside["def f(a=2):"] == ""


def test_every_part_has_modules_and_tests():
    for part in PARTS.values():
        assert part.modules()
        assert (ROOT / part.tests[0]).is_dir()


def test_a_fault_is_explained_by_its_text_wherever_it_stands(tmp_path):
    (tmp_path / "some.py").write_text(f"{HEAD}x = True\n")
    [fault] = find_faults(tmp_path, "some.py")
    entry = Explained("some.py", "x", "x = True", "x = False", "nobody reads it")
    assert unexplained([fault], []) == [fault]
    assert unexplained([fault], [entry]) == []
    assert outdated([fault], [entry]) == []
    assert outdated([], [entry]) == [entry]


def test_the_list_names_only_faults_that_there_are():
    entries = read()
    there = {path: faults_in(ROOT, path) for path in {entry.path for entry in entries}}
    for entry in entries:
        explained = [fault for fault in there[entry.path] if entry.explains(fault)]
        assert len(explained) == 1, f"{len(explained)} faults: {entry}"
        assert entry.why


def test_they_are_counted_by_module(tmp_path):
    (tmp_path / "some.py").write_text(f"{HEAD}x = 2\n")
    tried = find_faults(tmp_path, "some.py")
    assert table(tried, tried[:1], []).split()[-5:] == ["some.py", "2", "1", "1", "0"]


ROWS = page.rows_of(page.PAGE.read_text(encoding="utf-8"))


def test_the_page_shows_every_module_that_has_a_fault():
    """`./dev mutants MODULE --write` writes the row of a new module."""
    assert list(ROWS) == shown()


@pytest.mark.parametrize("path", ROWS)
def test_a_row_of_the_page_is_true_of_the_module_as_it_is_now(path):
    """After a change of the module, `./dev mutants MODULE --write` tries it again and writes its row."""
    row = ROWS[path]
    assert row.tried == len(faults_in(ROOT, path))
    assert row.explained == sum(entry.path == path for entry in read())
    assert row.neither == 0


def test_the_page_has_the_sums_of_its_rows():
    modules = [f"fencer/core/{name}.py" for name in ("a", "b")]
    old = [page.Row(path, 10, 2, 1, "2026-11-01") for path in modules]
    text = page.with_rows("# A page\n\n" + page._BEGIN + page._END + "\nmore\n", modules, old)
    assert "| `fencer/core/a.py` | 10 | 7 | 2 | 1 | 2026-11-01 |" in text
    assert "| all of `fencer/core` | 20 | 14 | 4 | 2 | |" in text
    new = page.Row(modules[1], 8, 0, 0, "2026-11-29")
    again = page.with_rows(text, modules, [new])
    assert page.rows_of(again) == {modules[0]: old[0], modules[1]: new}
    assert again.startswith("# A page\n")
    assert again.endswith("\nmore\n")
    assert page.rows_of(page.with_rows(again, modules[1:], [])) == {modules[1]: new}


def test_a_row_whose_numbers_do_not_add_up_is_refused():
    text = f"{page._BEGIN}\n| `fencer/core/a.py` | 10 | 8 | 2 | 1 | 2026-11-01 |\n{page._END}"
    with pytest.raises(ValueError, match="10 faults are not 8"):
        page.rows_of(text)


def test_a_word_that_names_nothing_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["cores"])
    assert "cores: neither a part (core, evicting, wording, planned, runtime)" in capsys.readouterr().err
    assert main(["fencer/core/fleet.py", "--place", "nope"]) == 2
    assert "no fault in a place called nope" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["core", "--tests", "tests/core", "tests/nowhere"])
    assert "--tests: there is no tests/nowhere" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["core", "--write", "--quick"])
    assert "--write is for whole modules" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["core", "--jobs", "0"])
    assert "--jobs is 1 at least" in capsys.readouterr().err


def test_faults_are_listed_for_other_commands_to_read(capsys):
    assert main(["fencer/core/fleet.py", "--place", "survey", "--list"]) == 0
    listed = capsys.readouterr()
    assert listed.out.startswith("fencer/core/fleet.py:")
    assert not listed.err


@pytest.mark.slow
def test_a_fault_that_a_test_finds_is_told_from_one_that_none_does():
    """In a function, and in a table; whatever was frozen before."""
    gc.freeze()
    told = []
    runner = Runner(ROOT, ["tests/core/test_fleet.py"], 1, lambda fault, found: told.append((fault, found)))
    places = {fleet.stalls.__name__, "STALL_REMEMBERED_S"}
    chosen = [fault for fault in faults_in(ROOT, "fencer/core/fleet.py") if fault.place in places]
    left = runner.survivors(chosen)
    gc.unfreeze()
    assert {fault.place for fault in left} == {"STALL_REMEMBERED_S"}
    assert told


def test_where_there_is_no_test_nothing_is_found():
    with pytest.raises(AlreadyFailing, match="without any fault, 0 of 0 tests fail"):
        Runner(ROOT, ["tests/core/test_text.py", "-k", "nowhere"], 1, lambda *_: None).survivors([])


def find(*words):
    """Run the command in a process of its own, as a user does; return its last line."""
    command = [sys.executable, "-m", "tests.long.mutants", *words, "--jobs", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_faults_at_load_time_reach_the_tests():
    """If pytest loads the module first, as a part of fencer's plugin, the tests see the unchanged one."""
    rungs = len(proof.SEEN)
    assert find("fencer/core/proof.py", "--place", "SEEN", "--tests", "tests/core/test_proof.py") == (
        f"{rungs} faults: {rungs} found, 0 explained, 0 neither; 0 explained in vain"
    )


@pytest.mark.slow
def test_a_fault_at_load_time_that_no_test_asserts_survives():
    """The same faults, with tests that load the module and assert nothing about it."""
    rungs = len(proof.SEEN)
    assert find("fencer/core/proof.py", "--place", "SEEN", "--tests", "tests/core/test_fleet.py") == (
        f"{rungs} faults: 0 found, 0 explained, {rungs} neither; 0 explained in vain"
    )


RUNNER = Runner(ROOT, ["tests/core/test_fleet.py"], 1, lambda _fault, _found: None)


def some_fault():
    return faults_in(ROOT, "fencer/core/fleet.py")[0]


def a_fault_in_a_function():
    return next(fault for fault in faults_in(ROOT, "fencer/core/fleet.py") if fault.function)


@pytest.mark.parametrize(
    ("status", "found"),
    [(0, False), (1 << 8, True), (signal.SIGPROF, True), (signal.SIGSEGV, True), (signal.SIGALRM, True)],
)
def test_how_a_trial_ends_shows_whether_it_found_the_fault(status, found):
    assert _found(status, some_fault()) is found


@pytest.mark.parametrize("status", [BROKEN << 8, 5 << 8, signal.SIGKILL, signal.SIGTERM])
def test_a_trial_that_breaks_or_is_killed_shows_nothing(status):
    with pytest.raises(NotTried, match="the trial ended with"):
        _found(status, some_fault())


def how_it_ends(what, cpu_s):
    pid = os.fork()
    if not pid:
        end_with(what, cpu_s, 60.0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def loop():
    while True:
        pass


def test_a_trial_may_wait_for_a_busy_machine_far_longer_than_it_may_loop():
    assert how_it_ends(lambda: int(signal.getitimer(signal.ITIMER_REAL)[0] < 30), 0.1) == 0
    assert how_it_ends(loop, 0.1) == -signal.SIGPROF


@pytest.mark.parametrize(("slow_trials", "survives"), [(0, True), (1, True), (2, False)])
def test_a_trial_that_lasts_too_long_is_tried_once_more(tmp_path, slow_trials, survives):
    """The machine may have been busy. A fault that makes tests wait does so again."""

    def trial(_fault, _tests, _tell):
        tries = len(list(tmp_path.iterdir()))
        (tmp_path / str(tries)).touch()
        if tries < slow_trials:
            signal.raise_signal(signal.SIGALRM)
        return 0

    fault = some_fault()
    left = list(RUNNER._survivors([fault], Measured(took_s={"a test": 0.0}), trial, again=False))
    assert left == ([fault] if survives else [])


@pytest.mark.parametrize("fails_without", [False, True])
def test_a_test_that_fails_without_a_fault_finds_none(fails_without):
    """It may depend on what ran before it: a cache, say, that another order of the tests has emptied."""

    def trial(fault, tests, tell):
        tell(tests[0])
        return int(fault is not None or fails_without)

    def survivors():
        return list(RUNNER._survivors([some_fault()], Measured(took_s={"a test": 0.0}), trial, again=False))

    if fails_without:
        with pytest.raises(AlreadyFailing, match="a test fails when it runs again in one process"):
            survivors()
    else:
        assert survivors() == []


def tried(fault, test):
    return in_fork(lambda: RUNNER._reloaded(fault, [test], lambda _test: None))


def raising(fault):
    return replace(fault, edit=(0, 0, "raise RuntimeError\n"))


@pytest.mark.slow
def test_a_module_that_its_fault_keeps_from_loading_is_found():
    assert tried(raising(some_fault()), "tests/core/test_fleet.py::test_no_matter") == 1


@pytest.mark.slow
def test_a_fault_that_leaves_no_test_to_run_is_not_found():
    """In that case pytest has an exit code of its own, which is not 0."""
    assert tried(some_fault(), "tests/core/test_fleet.py::test_that_there_is_not") == 0


def test_a_module_that_cannot_be_loaded_first_is_no_fault_found(tmp_path):
    """Every fault in it would seem to be found."""
    (tmp_path / "fencer" / "core").mkdir(parents=True)
    (tmp_path / "fencer" / "core" / "fleet.py").write_text("raise RuntimeError\n")
    runner = Runner(tmp_path, [], 1, lambda *_: None)
    with pytest.raises(AlreadyFailing, match=r"fencer/core/fleet.py cannot be loaded first: RuntimeError"):
        runner._check_reloading([some_fault()], Measured(took_s={"a test": 0.0}))


def test_a_line_that_runs_while_tests_are_collected_may_be_found_by_any_of_them():
    """A table of parameters is made from its results; the tests of that table run other lines."""
    fault = a_fault_in_a_function()
    line = (fault.path, fault.lines[0])
    measured = Measured({line: {"b"}}, {line}, took_s={"a": 0.0, "b": 1.0})
    assert measured.tests_for(fault, again=True) == ["b", "a"]
    assert measured.tests_for(fault, again=False) == ["b"]
    assert replace(measured, loading=set()).tests_for(fault, again=True) == ["b"]


@pytest.mark.slow
def test_a_fault_that_only_a_table_of_parameters_shows_is_found():
    place = Fitness.after.__name__
    assert find("fencer/core/fitness.py", "--place", place, "--tests", "tests/core/test_fitness.py").endswith(
        "found, 0 explained, 0 neither; 0 explained in vain"
    )


def test_all_parameters_of_a_chosen_test_run():
    """A table with a fault in it may give the tests that are made from it other names."""

    @dataclass(frozen=True)
    class Item:
        nodeid: str

    chosen = _Chosen(["test_a.py::test_quick", "test_a.py::test_rung[silent]"], lambda _test: None)
    items = [Item(f"test_a.py::{name}") for name in ("test_rung[held]", "test_other", "test_quick")]
    chosen.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["test_a.py::test_quick", "test_a.py::test_rung[held]"]


@pytest.mark.slow
def test_a_test_that_fails_the_second_time_is_no_test_that_finds_every_fault(tmp_path):
    """A trial runs in a process that has run all tests once."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    e2e: as in the project\n    libvirt: the same\n"
    )
    path = tmp_path / "test_once.py"
    path.write_text("runs = []\n\n\ndef test_once():\n    runs.append(1)\n    assert len(runs) == 1\n")
    with pytest.raises(AlreadyFailing, match="test_once fails the second time it runs in one process"):
        Runner(ROOT, [str(path)], 1, lambda *_: None).survivors([a_fault_in_a_function()])

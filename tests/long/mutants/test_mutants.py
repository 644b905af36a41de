"""Faults put into code: which there are, that tests find them, and which are explained."""

import gc

import pytest

from fencer.core import fleet
from tests.long.mutants.__main__ import PARTS, ROOT, main, table
from tests.long.mutants.explained import Explained, outdated, read, unexplained
from tests.long.mutants.faults import faults_in
from tests.long.mutants.runner import AlreadyFailing, Runner

HEAD = '"""A module."""\n'


def faults(tmp_path, source):
    """Return the faults of some lines, as ``(place, before, after)``."""
    (tmp_path / "some.py").write_text(f"{HEAD}{source}\n")
    return {(fault.place, fault.before, fault.after) for fault in faults_in(tmp_path, "some.py")}


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
    inside = {fault.after: fault.function for fault in faults_in(tmp_path, "some.py")}
    assert inside["return 4"] == "f"
    assert inside["def f(a=2):"] == ""


def test_every_part_has_modules_and_tests():
    for part in PARTS.values():
        assert part.modules()
        assert (ROOT / part.tests[0]).is_dir()


def test_a_fault_is_explained_by_its_text_wherever_it_stands(tmp_path):
    (tmp_path / "some.py").write_text(f"{HEAD}x = True\n")
    [fault] = faults_in(tmp_path, "some.py")
    entry = Explained("some.py", "x", "x = True", "x = False", "nobody reads it")
    assert unexplained([fault], []) == [fault]
    assert unexplained([fault], [entry]) == []
    assert outdated([fault], [entry]) == []
    assert outdated([], [entry]) == [entry]


def test_the_list_names_only_faults_that_there_are():
    entries = read()
    there = {path: faults_in(ROOT, path) for path in {entry.path for entry in entries}}
    for entry in entries:
        assert any(entry.explains(fault) for fault in there[entry.path]), entry
        assert entry.why


def test_they_are_counted_by_module(tmp_path):
    (tmp_path / "some.py").write_text(f"{HEAD}x = 2\n")
    tried = faults_in(tmp_path, "some.py")
    assert table(tried, tried[:1], []).split()[-5:] == ["some.py", "2", "1", "1", "0"]


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

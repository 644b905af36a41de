"""Tries faults: which tests find them?

A fault in a function's body is put into a process that has collected all tests, by the code that the function
runs, and only the tests that run its lines are asked: first those that found others in the same function or
module, then the quickest. One that is there when its module
is loaded, and one that no test has found in that way, is loaded again, as in a checkout with that text. Each
trial is a process of its own, forked from one that has imported what takes long. The checkout stays as it is.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import coverage
import hypothesis
import pytest

from tests.long.mutants.faults import Fault
from tests.long.mutants.forks import Tell, end_with, heard_from, in_fork, tell_through_a_pipe

PATIENCE = 5
"""A trial may use this many times the CPU time that its tests take without a fault, and `PATIENCE_S` more. A
fault that uses more is found: it loops."""
PATIENCE_S = 5
WAIT = 10
"""A trial may last this many times its CPU time. One that lasts longer waits for something, or the machine is
busy: the runner tries it again. A fault that makes its tests wait twice is found."""

_FOUND = 1
"""Exit code of a trial, besides 0 (not found) and `forks.BROKEN`."""
_SHOW_THE_FAULT = {signal.SIGPROF, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE}
"""Signals that end a trial because of its fault: a loop, or a crash. Any other signal comes from outside."""
_QUIET = (
    *("-q", "-s", "--assert=plain"),
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-p", "no:rerunfailures"),
)
_USUAL = ("-o", "addopts=", "--import-mode=importlib", "--strict-markers", "-m", "not (e2e or libvirt)")


@dataclass
class Measured:
    """What the tests do without any fault.

    Attributes:
        ran_by: The tests that run a line, by file and line.
        loading: The lines that run before any test: while modules are loaded and tests are collected.
        took_s: What each test takes.
        modules: What was imported for them, besides the project's own.
        finders: The tests that have found a fault, and pass without one.
        finds: How many faults of a function, and of a module, each test has found so far.
    """

    ran_by: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    loading: set[tuple[str, int]] = field(default_factory=set)
    took_s: dict[str, float] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    finders: set[str] = field(default_factory=set)
    finds: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def tests_for(self, fault: Fault, *, again: bool) -> list[str]:
        """Return the tests that may find a fault, the likeliest first; all, if it is there from the start.

        So may any test find one in a line that runs before the tests, if all modules are loaded again.

        Args:
            fault: What is tried.
            again: All modules are loaded again.
        """
        lines = [(fault.path, line) for line in fault.lines] if fault.function else []
        found: set[str] = set().union(*(self.ran_by.get(line, ()) for line in lines))
        every = not found or (again and not self.loading.isdisjoint(lines))
        return sorted(
            self.took_s if every else found,
            key=lambda test: (test not in found, *self._finds_less(fault, test), test),
        )

    def _finds_less(self, fault: Fault, test: str) -> tuple[int, int, float]:
        in_function, in_module = (self.finds[fault.path, name, test] for name in (fault.function, ""))
        return -in_function, -in_module, self.took_s[test]

    def found_by(self, test: str, fault: Fault) -> None:
        """Take note of a test that found a fault: it may find the next one, too."""
        self.finds.update({(fault.path, name, test) for name in (fault.function, "")})

    def patience_s(self, tests: Iterable[str]) -> int:
        """Return for how long a trial with these tests may go on."""
        return int(PATIENCE * sum(self.took_s[test] for test in tests)) + PATIENCE_S


class AlreadyFailing(Exception):
    """The tests fail, or are none, without any fault."""


class NotTried(Exception):
    """A trial ended in a way that shows nothing about its fault."""


class Runner:
    """Faults, and the tests that are to find them.

    Args:
        root: The checkout.
        tests: Paths for pytest.
        jobs: So many trials at a time.
        say: Told of each trial whether the fault was found.
    """

    def __init__(
        self, root: Path, tests: Sequence[str], jobs: int, say: Callable[[Fault, bool], None]
    ) -> None:
        self.root, self.tests, self.jobs, self._say = root, tests, jobs, say

    def survivors(self, faults: Sequence[Fault], *, quick: bool = False) -> list[Fault]:
        """Return the faults that no test finds.

        Args:
            faults: Which to try.
            quick: Load nothing again: leave out those that are there when a module is loaded, and be content
                with what is found of the others.

        Raises:
            AlreadyFailing: Some fail without any fault.
            NotTried: A trial ended in a way that shows nothing about its fault.
        """
        told = in_fork(lambda: self._first_pass(faults))
        if isinstance(told, str):
            raise AlreadyFailing(told)
        measured, left = told
        if quick:
            return [faults[index] for index in left if faults[index].function]
        for name in measured.modules:
            with suppress(ImportError):
                importlib.import_module(name)
        if left:
            self._check_reloading([faults[index] for index in left], measured)
        return list(self._survivors((faults[index] for index in left), measured, self._reloaded, again=True))

    def _first_pass(self, faults: Sequence[Fault]) -> tuple[Measured, list[int]] | str:
        """Collect and measure the tests, and try what can be tried on what they loaded; in a fork."""
        plugin = _AfterCollection(self, faults)
        plugin.watch_loading()
        code = pytest.main([*_QUIET, *_USUAL, *self.tests], plugins=[plugin])
        if plugin.left is None:
            return plugin.why or f"pytest ended with exit code {code}: see its output"
        return plugin.measured, plugin.left

    def _survivors(
        self,
        faults: Iterable[Fault],
        measured: Measured,
        trial: Callable[[Fault, Sequence[str], Tell], int],
        *,
        again: bool,
    ) -> Iterator[Fault]:
        """Try faults, so many at a time, and return those that are not found, in any order."""
        running: dict[int, _Running] = {}
        waiting = deque((fault, 0) for fault in faults)
        while waiting or running:
            if waiting and len(running) < self.jobs:
                fault, waited = waiting.popleft()
                tests = measured.tests_for(fault, again=again)
                cpu_s = measured.patience_s(tests)
                told, tell = tell_through_a_pipe()
                sys.stdout.flush()
                pid = os.fork()
                if not pid:
                    end_with(
                        lambda fault=fault, tests=tests, tell=tell: trial(fault, tests, tell),
                        cpu_s,
                        WAIT * cpu_s,
                    )
                os.close(tell.pipe)
                running[pid] = _Running(fault, told, waited)
                continue
            pid, status = os.wait()
            ended = running.pop(pid)
            for test in heard_from(ended.pipe):
                self._check_finder(test, measured, trial, again=again)
                measured.found_by(test, ended.fault)
            if _lasted_too_long(status) and not ended.waited:
                waiting.append((ended.fault, 1))
                continue
            found = _found(status, ended.fault)
            self._say(ended.fault, found)
            if not found:
                yield ended.fault

    def _check_finder(
        self,
        test: str,
        measured: Measured,
        trial: Callable[[Fault | None, Sequence[str], Tell], int],
        *,
        again: bool,
    ) -> None:
        """Run a test that has found its first fault without one, as the first of a trial.

        Raises:
            AlreadyFailing: It fails: what it finds shows nothing.
        """
        if again or test in measured.finders:
            return
        measured.finders.add(test)
        if in_fork(lambda: trial(None, [test], lambda _test: None)) != 0:
            raise AlreadyFailing(f"without any fault, {test} fails when it runs again in one process")

    def _check_reloading(self, faults: Sequence[Fault], measured: Measured) -> None:
        """Load modules and run the tests as a trial does, but without a fault.

        What fails here would fail in every trial, and count as found. Each module is loaded first once: some
        may load only after others.

        Raises:
            AlreadyFailing: A module cannot be loaded, or a test fails.
        """
        by_path = {fault.path: fault for fault in faults}
        unchanged = [replace(fault, edit=(0, 0, "")) for fault in by_path.values()]
        for fault in unchanged:
            if why := in_fork(lambda fault=fault: self._load_again(fault)):
                raise AlreadyFailing(f"without any fault, {fault.path} cannot be loaded first: {why}")
        code = in_fork(
            lambda: (
                self._load_again(unchanged[0]) or self._tested_again([*measured.took_s], lambda _test: None)
            )
        )
        if code != 0:
            raise AlreadyFailing(f"without any fault, but with modules loaded again, pytest ends with {code}")

    def _reloaded(self, fault: Fault, tests: Sequence[str], tell: Tell) -> int:
        """Try the file of the likeliest test first: to collect all of them takes seconds."""
        file = tests[0].partition("::")[0]
        likely = [test for test in tests if test.partition("::")[0] == file]
        others = [test for test in tests if test.partition("::")[0] != file]
        for some in filter(None, (likely, others)):
            if self._load_again(fault):
                return _FOUND
            try:
                code = self._tested_again(some, tell)
            except Exception:  # noqa: BLE001 - a fault may raise anything where pytest loads fencer's plugin
                return _FOUND
            # Where a fault leaves no test to run, no test has found it.
            if code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
                return _FOUND
        return 0

    def _load_again(self, fault: Fault) -> str:
        """Forget all of the project, and load the module with the fault; return why it cannot be loaded.

        This comes before pytest starts: pytest loads fencer as a plugin, by a finder of its own.
        """
        for name in [name for name in sys.modules if name.partition(".")[0] in {"fencer", "tests"}]:
            del sys.modules[name]
        loader = _Loader(self.root, fault)
        sys.meta_path.insert(0, loader)
        try:
            importlib.import_module(loader.name)
        except Exception as error:  # noqa: BLE001 - a fault may raise anything
            return f"{type(error).__name__}: {error}"
        return ""

    def _tested_again(self, tests: Sequence[str], tell: Callable[[str], None]) -> int:
        """Run the tests after `_load_again`, and return pytest's exit code."""
        files = sorted({test.partition("::")[0] for test in tests})
        return int(pytest.main([*_QUIET, *_USUAL, "-x", *files], plugins=[_Chosen(tests, tell)]))


@dataclass(frozen=True, slots=True)
class _Running:
    """A trial that runs.

    Attributes:
        fault: What is tried.
        pipe: Where the trial reports which test found it.
        waited: How many trials of this fault have lasted too long.
    """

    fault: Fault
    pipe: int
    waited: int


def _lasted_too_long(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM


def _found(status: int, fault: Fault) -> bool:
    """Whether a trial found its fault, by how its process ended.

    Raises:
        NotTried: The runner has a defect, or another process killed the trial.
    """
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) in {0, _FOUND}:
        return os.WEXITSTATUS(status) == _FOUND
    if _lasted_too_long(status) or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in _SHOW_THE_FAULT):
        return True
    raise NotTried(f"the trial ended with {os.waitstatus_to_exitcode(status)}: {fault}")


class _AfterCollection:
    """A plugin of pytest: measures all tests, then tries faults on what they have loaded."""

    def __init__(self, runner: Runner, faults: Sequence[Fault]) -> None:
        self.measured = Measured()
        self.left: list[int] | None = None
        self.why = ""
        self._runner, self._faults = runner, faults
        self._items: dict[str, pytest.Item] = {}
        self._loading = self._watch()

    def pytest_sessionstart(self) -> None:
        """The first wrong example will do."""
        _without_chance()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running the tests once."""
        self._loading.stop()
        data = self._loading.get_data()
        for path in data.measured_files():
            self.measured.loading |= {(self._name(path), line) for line in data.lines(path) or ()}
        self._items = {item.nodeid: item for item in session.items}
        own = ("fencer", "tests", "test_", "conftest", "__")
        self.measured.modules = [name for name in sys.modules if not name.startswith(own)]
        self._measure(session)
        if session.testsfailed or not session.items:
            self.why = f"without any fault, {session.testsfailed} of {len(session.items)} tests fail"
            return True
        functions = _functions(self._runner.root / "fencer")
        gc.freeze()  # what is shared with the trials stays shared
        inside = {index: fault for index, fault in enumerate(self._faults) if fault.function}
        trial = _Trial(session, self._items, functions, self._runner.root)
        if inside and (failed := in_fork(lambda: self._tried_without_fault(trial))):
            self.why = f"without any fault, {failed} fails the second time it runs in one process"
            return True
        try:
            found = list(self._runner._survivors(inside.values(), self.measured, trial, again=False))
        except AlreadyFailing as failing:
            self.why = str(failing)
            return True
        self.left = [
            index for index, fault in enumerate(self._faults) if not fault.function or fault in found
        ]
        return True

    def watch_loading(self) -> None:
        """Note the lines that run from now on until the tests are collected."""
        self._loading.start()

    def _watch(self) -> coverage.Coverage:
        paths = sorted({str(self._runner.root / fault.path) for fault in self._faults})
        return coverage.Coverage(data_file=None, include=paths, branch=False, config_file=False)

    def _name(self, path: str) -> str:
        return str(Path(path).relative_to(self._runner.root))

    def _tried_without_fault(self, trial: _Trial) -> str:
        """Run all tests again, as a trial does; return the first that fails: it would find every fault."""
        failed: list[str] = []
        trial(None, sorted(self._items, key=lambda test: self.measured.took_s[test]), failed.append)
        return "".join(failed)

    def _measure(self, session: pytest.Session) -> None:
        """Run each test once, and note which lines it runs."""
        watch = self._watch()
        for item in session.items:
            watch.start()
            watch.switch_context(item.nodeid)
            began_s = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            self.measured.took_s[item.nodeid] = time.perf_counter() - began_s
            watch.stop()
        data = watch.get_data()
        for path in data.measured_files():
            for line, tests in data.contexts_by_lineno(path).items():
                self.measured.ran_by[self._name(path), line] = set(tests) & self._items.keys()


class _Trial:
    """A trial on loaded modules, in a forked process."""

    def __init__(
        self,
        session: pytest.Session,
        items: Mapping[str, pytest.Item],
        functions: Mapping[tuple[str, str], list[FunctionType]],
        root: Path,
    ) -> None:
        self._session, self._items, self._functions, self._root = session, items, functions, root

    def __call__(self, fault: Fault | None, tests: Sequence[str], tell: Callable[[str], None]) -> int:
        if fault is not None:
            self._put(fault)
        for test in tests:
            item = self._items[test]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._session.testsfailed:
                tell(test)
                return _FOUND
        return 0

    def _put(self, fault: Fault) -> None:
        path = str(self._root / fault.path)
        code = compile(fault.source(self._root), path, "exec", dont_inherit=True)
        changed = [inner for inner in _codes(code) if inner.co_qualname == fault.function]
        if len(changed) > 1:  # a getter and its setter, say: the trial with the module loaded again is exact
            return
        for function in self._functions.get((path, fault.function), ()):
            function.__code__ = changed[0]


class _Chosen:
    """A plugin of pytest: some tests, in this order.

    A fault in a table changes the parameters of tests that are made from that table, and so their names. All
    parameters of a chosen test run.
    """

    def __init__(self, tests: Sequence[str], tell: Callable[[str], None]) -> None:
        self._order: dict[str, int] = {}
        for index, test in enumerate(tests):
            for name in (test, _without_parameters(test)):
                self._order.setdefault(name, index)
        self._tell = tell

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say which of them found the fault."""
        if report.failed:
            self._tell(report.nodeid)

    def pytest_sessionstart(self) -> None:
        """The first wrong example will do."""
        _without_chance()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all others."""
        places = {item: self._place(item.nodeid) for item in items}
        items[:] = sorted(
            (item for item in items if places[item] is not None), key=lambda item: places[item] or 0
        )

    def _place(self, test: str) -> int | None:
        return self._order.get(test, self._order.get(_without_parameters(test)))


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module with a fault in it."""

    def __init__(self, root: Path, fault: Fault) -> None:
        self.name = fault.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._path, self._source = root / fault.path, fault.source(root)

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find that one, and none of the others."""
        del path, target
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed text."""
        exec(compile(self._source, str(self._path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a mutant is there to be run


def _without_parameters(test: str) -> str:
    return test.partition("[")[0]


def _without_chance() -> None:
    """Draw the same examples for each fault, and stop at the first that shows it."""
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "trials", hypothesis.settings(), derandomize=True, database=None, phases=phases
    )
    hypothesis.settings.load_profile("trials")


def _functions(room: Path) -> Mapping[tuple[str, str], list[FunctionType]]:
    """Find every function of the project that was loaded, wherever it is held, by file and qualified name."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    gc.unfreeze()  # what was frozen is not among the objects
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(str(room)):
            code = thing.__code__
            found.setdefault((code.co_filename, code.co_qualname), []).append(thing)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)

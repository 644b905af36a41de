"""The one file: how it is built, what it may use, and how it is put in place."""

import ast
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from fencer.guest import build
from fencer.guest.api import Answer
from fencer.guest.errors import Unreachable
from fencer.guest.facts import DRAIN_UNIT, UNCORDON_UNIT
from fencer.guest.install import install, uninstall
from fencer.guest.node import NodeClient
from fencer.guest.places import PLACES, UNITS
from fencer.guest.uncordon import standing
from tests.support import missing_real_part

GUEST = Path(build.__file__).parent
SOURCES = sorted([*GUEST.glob("*.py"), *(GUEST.parent / "evicting").glob("*.py")])
LIMIT = 139_000
"""Bytes; no transport asks for it: it keeps the file one that can be read before root runs it. It was 100,000
until it learned which of the listed API servers are its cluster's, and to say what is wrong with the rest; it
was 102,000 until drains ended where pods come back for ever, cordons of soft-reboots and of shutdowns that
were called off came off, and `install` and `check` learned which units carry the drain's network, which kinds
of shutdown this machine's systemd announces, and to listen for them; 130,000
until it went by the rules of evictions that drains from outside go by, and no smaller ones of its own;
135,000 until an answer that cannot be written was a line and an exit code; and 137,000 until `check` read
whether the machine can hibernate."""
OLDEST = (3, 8)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "fencer-guest"
    assert build.main(["--output", str(path)]) == 0
    return path


# -- the file ---------------------------------------------------------------------------------------------


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, program: Path) -> None:
    """In another process, with another time zone, order of hashes, and mode of files."""
    again = tmp_path / "fencer-guest"
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Pacific/Auckland"}
    command = [sys.executable, "-m", "fencer.guest.build", "-o", str(again)]
    done = subprocess.run(command, env=environment, umask=0o077, capture_output=True, text=True, check=True)
    assert again.read_bytes() == program.read_bytes()
    assert str(len(program.read_bytes())) in done.stdout


def test_it_is_small(program: Path) -> None:
    assert program.stat().st_size < LIMIT


def test_it_holds_the_code_of_the_sources_line_by_line(program: Path) -> None:
    """Only docstrings, comments, types, and spaces are left out."""

    def code(source: str) -> list[tuple[int, str]]:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.annotation = None
            if isinstance(node, ast.FunctionDef):
                node.returns = None
            if isinstance(node, ast.AnnAssign):
                node.annotation = ast.Constant(0)
            if isinstance(body := getattr(node, "body", None), list):
                body[:] = [
                    one
                    for one in body
                    if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
                    and not (isinstance(one, ast.ImportFrom) and one.module in ("__future__", "typing"))
                ]
        return [(node.lineno, ast.dump(node)) for node in ast.walk(tree) if isinstance(node, ast.stmt)]

    with ZipFile(program) as archive:
        for source in SOURCES:
            name = f"fencer/{source.parent.name}/{source.name}"
            if name in archive.namelist():
                assert code(archive.read(name).decode()) == code(source.read_text())


def test_a_text_of_several_lines_keeps_its_spaces() -> None:
    """Only code is outdented, and what goes on in the next line has no indentation to keep."""
    source = 'if x:\n    y = f(\n        """a\n      b""",  # why\n        1,\n    )\n'
    packed = build.outdented(build.without_docs(source))
    assert packed == 'if x:\n y = f(\n"""a\n      b""",\n1,\n)\n'


def test_spaces_within_lines_are_left_out() -> None:
    """But not within texts, nor where two words would become one."""
    source = (
        "if not x in [1, 'a  b'] or f'{y!r:>{2 * z}} , {y}' != b'a' :\n    return  'a' if - x else  y[a]\n"
    )
    packed = "if not x in[1,'a  b']or f'{y!r:>{2 * z}} , {y}'!=b'a':\n    return  'a' if-x else  y[a]\n"
    assert build.unspaced(source) == packed


def test_types_are_left_out() -> None:
    """Of a field a nought is left: it makes a dataclass what it is. What stands in several lines stays."""
    source = (
        'class A:\n    a: int = 1\n    def f(self, ä: "ö" = 2, *b: int, **c: dict[str, int]) -> None: ...\n'
    )
    assert build.without_types(source) == ("class A:\n    a: 0 = 1\n    def f(self, ä = 2, *b, **c): ...\n")
    source = "from __future__ import annotations\n" + source
    assert build.without_types(source).startswith("\nclass A")
    source = "from typing import Any, cast\ndef f(a: Any) -> None:\n    cast('Any', a)\n"
    assert build.without_types(source).startswith("from typing import cast\ndef f(a):")
    spread = "from __future__ import annotations\n"
    spread += "def f(\n    a: int,\n    b: dict[\n        str, int\n    ],\n) -> str: ...\n"
    assert build.without_types(spread) == spread.replace(": int,", ",").replace(" -> str", "")


def test_it_runs_alone(program: Path, tmp_path: Path) -> None:
    """Without this environment, its packages, and the checkout."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    command = [python, "-I", "-S", str(program), "--help"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    for word in ("drain", "uncordon", "check", "install", "uninstall"):
        assert f"    {word} " in done.stdout or f"    {word}\n" in done.stdout


@pytest.mark.slow
def test_every_python_of_this_machine_runs_it(program: Path, tmp_path: Path) -> None:
    """Down to the oldest, where it is here (vermin judges the sources anyhow). `check` needs all of it."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], 20)]
    pythons = {sys.executable, *filter(None, map(shutil.which, names))}
    for python in filter(_works, pythons):
        command = [python, "-I", "-S", str(program)]
        checked = subprocess.run([*command, "check"], env={}, capture_output=True, text=True, check=False)
        assert (checked.returncode in (0, 1), checked.stderr) == (True, ""), python
        assert "What happens to the pods" in checked.stdout, python
        root = tmp_path / Path(python).name
        root.mkdir()
        subprocess.run([*command, "install", "--root", str(root)], env={}, capture_output=True, check=True)
        assert (root / "usr/local/bin/fencer-guest").read_bytes() == program.read_bytes()


def _works(python: str) -> bool:
    """Whether it is more than a launcher for one that is not here."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def test_nobody_has_to_listen(program: Path) -> None:
    """A console that knows no arrows, or that takes nothing any more, ends no drain."""
    plain = {"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii"}
    for command in ("check", "drain"):
        words = [sys.executable, str(program), command]
        said = subprocess.run(words, env=plain, capture_output=True, text=True, check=False)
        assert (said.returncode in (0, 1), said.stderr) == (True, "")
        with Path("/dev/full").open("w") as full:
            unheard = subprocess.run(
                words, env=plain, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        lost = "fencer-guest: the output cannot be written: No space left on device\n"
        expected = (
            (said.returncode, "") if command == "drain" else (1, lost)
        )  # a check is asked for its answer
        assert (unheard.returncode, unheard.stderr) == expected


def test_a_drain_that_systemd_ends_tells_what_it_hung_in(program: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        server = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        content = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
        }
        kubeconfig.write_text(json.dumps(content))
        options = ["drain", "--now", "--kubeconfig", str(kubeconfig), "--node", "k8s-2"]
        command = [sys.executable, str(program), *options]
        deaf.settimeout(60)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as drain, deaf.accept()[0]:
            drain.terminate()  # while its connection stands: otherwise it would ask again, and rest meanwhile
            said = drain.communicate()[1]
    assert drain.returncode == -signal.SIGTERM
    assert "in _try_to_cordon" in said
    assert "secret" not in said


def test_a_drain_needs_nobody_to_tell_that_to(program: Path) -> None:
    """Without stderr there is nothing to write it to, and the drain goes on all the same."""
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, str(program), "drain"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert "nothing is drained (`fencer-guest drain --now`" in done.stdout


@pytest.mark.parametrize("time", ["0", "0.5", "-1", "nan", "inf", "soon", ""])
def test_a_time_that_is_none_is_refused_before_anything_is_written(
    program: Path, tmp_path: Path, time: str
) -> None:
    command = [sys.executable, str(program), "install", "--root", str(tmp_path), "--timeout", time]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--timeout: must be " in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not _files(tmp_path)


def test_an_image_that_is_not_there_is_not_made_up(program: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(program), "install", "--root", str(tmp_path / "typo")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert f"--root: {tmp_path}/typo: no such folder" in refused.stderr
    assert not (tmp_path / "typo").exists()


def test_an_old_python_is_told_so(program: Path) -> None:
    """Its start parses in any Python 3, and says what is needed."""
    with ZipFile(program) as archive:
        main = archive.read("__main__.py").decode()
    tree = ast.parse(main, feature_version=(3, 4))
    check = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(check.test) == f"sys.version_info < {OLDEST}"
    assert tree.body.index(check) < next(
        at for at, node in enumerate(tree.body) if isinstance(node, ast.ImportFrom)
    )


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_only_the_standard_library_is_imported(source: Path) -> None:
    tree = ast.parse(source.read_text(), feature_version=OLDEST)
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert (
                name == "fencer"
                or name.startswith(("fencer.guest", "fencer.evicting"))
                or name.split(".")[0] in sys.stdlib_module_names
            )


def test_nothing_newer_than_the_oldest_python_is_used() -> None:
    """Syntax, modules, functions and arguments, by vermin's tables."""
    command = [
        sys.executable,
        "-c",
        "import vermin; vermin.main()",
        "--target=3.8-",
        "--no-tips",
        "--violations",
    ]
    done = subprocess.run([*command, *map(str, SOURCES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# -- the units --------------------------------------------------------------------------------------------


def test_systemd_understands_the_units(program: Path, tmp_path: Path) -> None:
    """`systemd-analyze verify` says nothing at all."""
    if shutil.which("systemd-analyze") is None:
        missing_real_part("units not verified: no systemd-analyze here; apt-get install systemd")
    files = []
    for name, text in build.units().items():
        files.append(tmp_path / name)
        files[-1].write_text(text.replace("/usr/local/bin/fencer-guest", str(program)))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def _settings(unit: str) -> dict[str, str]:
    """Return a unit's settings; those that stand there several times are joined."""
    found: dict[str, str] = {}
    for line in build.units()[unit].splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[key] = f"{found[key]} {value}" if key in found else value
    return found


def test_the_drain_is_stopped_before_every_known_kubelet() -> None:
    """And before what a drain needs: network, names, container runtimes, storage."""
    after = _settings(DRAIN_UNIT)["After"].split()
    assert set(UNITS) <= set(after)
    assert {"network-online.target", "containerd.service", "crio.service", "docker.service"} <= set(after)
    assert {"remote-fs.target", "local-fs.target", "iscsid.service"} <= set(after)


def test_nothing_ties_the_drain_to_a_kubelet() -> None:
    """With Requires=k3s.service a restart of k3s would drain the node."""
    for unit in (DRAIN_UNIT, UNCORDON_UNIT):
        assert not {"Requires", "Requisite", "BindsTo", "PartOf", "Conflicts"} & set(_settings(unit))


def test_the_drain_unit_is_active_from_boot_and_has_time() -> None:
    """What is not active is not stopped; and systemd must not kill a drain that keeps to its limit."""
    settings = _settings(DRAIN_UNIT)
    assert (settings["Type"], settings["RemainAfterExit"], settings["WantedBy"]) == (
        "oneshot",
        "yes",
        "multi-user.target",
    )
    assert "ExecStart" not in settings
    limit = int(settings["Environment"].removeprefix("DRAIN_TIMEOUT="))
    assert settings["ExecStop"].endswith("--timeout ${DRAIN_TIMEOUT}")
    assert int(settings["TimeoutStopSec"]) > limit


def test_the_uncordon_is_over_before_a_drain_begins() -> None:
    """At shutdown it must not take off the cordon that the drain has just set."""
    assert DRAIN_UNIT not in _settings(UNCORDON_UNIT).get("Before", "")
    assert DRAIN_UNIT in _settings(UNCORDON_UNIT)["After"].split()


# -- in place ---------------------------------------------------------------------------------------------

ENABLED = "etc/systemd/system/multi-user.target.wants"
FILES = {
    "usr/local/bin/fencer-guest",
    f"etc/systemd/system/{DRAIN_UNIT}",
    f"etc/systemd/system/{UNCORDON_UNIT}",
    f"{ENABLED}/{DRAIN_UNIT}",
    f"{ENABLED}/{UNCORDON_UNIT}",
}


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}


def _install(root: Path, timeout_s: int | None = None) -> list[str]:
    said: list[str] = []
    assert install(b"program", build.units(), root, None, said.append, timeout_s) == 0
    return said


def test_an_image_gets_program_and_enabled_units(tmp_path: Path) -> None:
    said = _install(tmp_path)
    assert _files(tmp_path) == FILES
    assert (tmp_path / "usr/local/bin/fencer-guest").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / f"etc/systemd/system/{DRAIN_UNIT}").stat().st_mode & 0o777 == 0o644
    assert str((tmp_path / ENABLED / DRAIN_UNIT).readlink()) == f"/etc/systemd/system/{DRAIN_UNIT}"
    assert f"{DRAIN_UNIT}: enabled" in said


def test_installing_twice_is_installing_once(tmp_path: Path) -> None:
    _install(tmp_path)
    before = {name: (tmp_path / name).lstat().st_mtime_ns for name in FILES}
    said = _install(tmp_path)
    assert {name: (tmp_path / name).lstat().st_mtime_ns for name in FILES} == before
    assert all(line.endswith("there already") for line in said)


def test_a_newer_program_replaces_the_older(tmp_path: Path) -> None:
    _install(tmp_path)
    said: list[str] = []
    install(b"newer", build.units(), tmp_path, None, said.append)
    assert (tmp_path / "usr/local/bin/fencer-guest").read_bytes() == b"newer"
    assert said[0] == "/usr/local/bin/fencer-guest: written, 5 bytes"
    assert _files(tmp_path) == FILES


def test_one_option_sets_both_limits(tmp_path: Path) -> None:
    _install(tmp_path, 300)
    text = (tmp_path / f"etc/systemd/system/{DRAIN_UNIT}.d/timeout.conf").read_text()
    assert text == "[Service]\nEnvironment=DRAIN_TIMEOUT=300\nTimeoutStopSec=330\n"
    _install(tmp_path)
    assert (tmp_path / f"etc/systemd/system/{DRAIN_UNIT}.d/timeout.conf").exists(), "an update keeps it"


def test_uninstalling_leaves_nothing(tmp_path: Path) -> None:
    foreign = tmp_path / "etc/systemd/system/k3s.service"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("")
    _install(tmp_path, 300)
    said: list[str] = []
    assert uninstall(tmp_path, None, said.append, _nothing_stands) == 0
    assert _files(tmp_path) == {"etc/systemd/system/k3s.service"}
    assert not (tmp_path / f"etc/systemd/system/{DRAIN_UNIT}.d").exists()
    said.clear()
    assert uninstall(tmp_path, None, said.append, _nothing_stands) == 0
    assert said == ["nothing to remove"]


def test_a_cordon_that_only_the_unit_would_take_off_keeps_it_in_place(tmp_path: Path) -> None:
    _install(tmp_path)
    said: list[str] = []
    stands = "k8s-2 is cordoned: `kubectl uncordon k8s-2` ends it"
    assert uninstall(tmp_path, None, said.append, lambda: stands) == 1
    assert (said, _files(tmp_path)) == ([f"nothing was removed: {stands}"], FILES)


def test_where_it_is_not_known_whether_a_cordon_stands_nothing_is_removed(tmp_path: Path) -> None:
    def unknown() -> str:
        raise Unreachable("no answer")

    said: list[str] = []
    assert uninstall(tmp_path, None, said.append, unknown) == 0, "nobody is asked for nothing"
    _install(tmp_path)
    with pytest.raises(Unreachable):
        uninstall(tmp_path, None, said.append, unknown)
    assert _files(tmp_path) == FILES


@pytest.mark.parametrize(
    ("spec", "by", "manager", "stands"),
    [
        (True, "drain", "fencer-guest", True),
        (True, "drain", "", True),
        (True, "unfence", "", False),
        (False, "drain", "fencer-guest", False),
        (True, "drain", "kubectl", False),
        (True, "drain", "fencer", False),
        (True, "unfence", "fencer-guest", False),
        (True, None, "fencer-guest", False),
    ],
    ids=[
        *("ours", "by its note alone", "the agent's note alone", "over", "an admin's since", "the agent's"),
        *("of a fence", "without a note"),
    ],
)
def test_only_the_cordon_of_the_drain_in_here_is_in_the_way(
    spec: bool, by: str | None, manager: str, stands: bool
) -> None:
    note = json.dumps({"schema": 1, "by": by, "bootID": "b", "since": "2026-11-20T10:00:00Z"})
    fields = {"manager": manager, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    body = {
        "metadata": {
            "name": "k8s-2",
            "annotations": {"fencer.dev/cordon": note} if by else {},
            "managedFields": [fields] if manager else [],
        },
        "spec": {"unschedulable": spec},
    }
    told = standing(NodeClient(_Answering(body), "k8s-2"))  # type: ignore[arg-type]  # as far as it is needed
    named = "k8s-2 is cordoned by the drain in this guest: `kubectl uncordon k8s-2` ends it"
    assert told == (named if stands else "")


class _Answering:
    """An API that has one node."""

    access = None

    def __init__(self, body: dict[str, object]) -> None:
        self._body = body

    def ask(self, _method: str, _path: str, **_how: object) -> Answer:
        return Answer(200, self._body)


def _nothing_stands() -> str:
    return ""


def test_every_installer_has_a_unit_and_a_kubeconfig() -> None:
    assert {place.name for place in PLACES} == {"k3s", "RKE2", "k0s", "kubeadm", "MicroK8s"}
    assert all(place.kubeconfig.startswith("/") and place.units for place in PLACES)

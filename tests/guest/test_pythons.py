"""Which Python the units run: report C's EL8, where `python3` is 3.6."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from fencer.guest import build, pythons
from fencer.guest.collect import collect
from fencer.guest.errors import Unusable
from fencer.guest.judge import judge
from fencer.guest.system import Ran, Run
from tests.guest.machine import Machine


def _link(root: Path, name: str, target: str) -> None:
    Machine(root).folder((root / name).parent)
    (root / name).symlink_to(target)


def test_the_one_that_runs_install_is_named() -> None:
    assert pythons.lasting("/usr/bin/python3.9") == "/usr/bin/python3.9"


def test_a_name_that_an_admin_may_switch_is_followed(tmp_path: Path) -> None:
    """On EL8 all of these names are links of `alternatives`."""
    _link(tmp_path, "usr/bin/python3", "/etc/alternatives/python3")
    _link(tmp_path, "etc/alternatives/python3", "/usr/bin/python3.9")
    assert pythons.lasting("/usr/bin/python3", tmp_path) == "/usr/bin/python3.9"


def test_the_systems_own_name_is_kept(tmp_path: Path) -> None:
    """The next release of Debian has another version behind it."""
    _link(tmp_path, "usr/bin/python3", "python3.11")
    assert pythons.lasting("/usr/bin/python3", tmp_path) == "/usr/bin/python3"


@pytest.mark.parametrize(
    "path",
    ["/root/.local/bin/python3.12", "/home/me/venv/bin/python", "/run/v/bin/python", "/opt/my py/python3"],
)
def test_one_that_the_units_would_not_find_is_refused(path: str) -> None:
    with pytest.raises(Unusable, match="install with another Python"):
        pythons.lasting(path)


def test_so_is_a_link_to_one(tmp_path: Path) -> None:
    _link(tmp_path, "usr/local/bin/python3.12", str(tmp_path / "root/.local/share/uv/python3.12"))
    with pytest.raises(Unusable, match=r"/usr/local/bin/python3\.12 lies where"):
        pythons.lasting("/usr/local/bin/python3.12", tmp_path)


@pytest.mark.parametrize("open_to_all", ["srv/py", "srv/py/python3.12"])
def test_one_that_others_than_root_may_change_is_refused(tmp_path: Path, open_to_all: str) -> None:
    """Root would run at every boot what anybody puts there."""
    machine = Machine(tmp_path)
    machine.write("srv/py/python3.12", "")
    _link(tmp_path, "usr/local/bin/python3.12", "/srv/py/python3.12")
    assert pythons.lasting("/usr/local/bin/python3.12", tmp_path) == "/usr/local/bin/python3.12"
    (tmp_path / open_to_all).chmod(0o777)
    with pytest.raises(Unusable, match=f"others than root may change .*{open_to_all} has owner .* mode 0777"):
        pythons.lasting("/usr/local/bin/python3.12", tmp_path)


def test_check_does_not_run_what_others_than_root_may_change(tmp_path: Path) -> None:
    machine, ran = Machine(tmp_path), list[Sequence[str]]()
    machine.write("usr/local/bin/fencer-guest", "#!/srv/py/python3.12\nPK")
    machine.write("srv/py/python3.12", "").parent.chmod(0o777)

    def run(command: Sequence[str]) -> Ran:
        ran.append(command)
        return machine.run(command)

    level, text = _told(machine, run)
    assert (level, "others than root may change what is read here" in text) == ("FAIL", True)
    assert not [command for command in ran if "fencer-guest" in command[0]]


def test_of_a_virtual_environment_it_is_the_one_that_that_was_made_from() -> None:
    """A venv is gone before the node is."""
    code = "from fencer.guest import pythons; print(pythons.running())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = (done.stdout or done.stderr).splitlines()[-1]  # a refusal, where that one lies in a home folder
    assert sys.prefix == sys.base_prefix or f"{sys.prefix}/bin" not in said


@pytest.mark.parametrize(
    ("files", "links", "found"),
    [
        (["usr/bin/python3.11"], {"usr/bin/python3": "python3.11"}, "/usr/bin/python3"),
        (
            ["usr/bin/python3.6", "usr/bin/python3.9", "usr/bin/python3.12", "usr/bin/python3.12-config"],
            {"usr/bin/python3": "/etc/alternatives/python3"},
            "/usr/bin/python3.12",
        ),
        (["usr/bin/python3.6"], {"usr/bin/python3": "python3.6"}, ""),
        (["usr/local/bin/python3.10"], {}, "/usr/local/bin/python3.10"),
        ([], {}, ""),
    ],
    ids=["Debian", "EL8", "EL8 as it comes", "built there", "none"],
)
def test_in_an_image_it_is_one_of_the_images(
    tmp_path: Path, files: list[str], links: dict[str, str], found: str
) -> None:
    for name in files:
        _link(tmp_path, name, "/nowhere")
    for name, target in links.items():
        _link(tmp_path, name, target)
    assert pythons.of_image(tmp_path) == found


def test_the_first_line_names_it_and_the_rest_still_runs(tmp_path: Path) -> None:
    for first in ("/x", "/a/longer/one" * 5, sys.executable):
        path = tmp_path / "fencer-guest"
        path.write_bytes(pythons.pinned(build.build(), first))
        assert path.read_bytes().startswith(f"#!{first}\n".encode())
        done = subprocess.run(
            [sys.executable, "-I", str(path), "--version"], capture_output=True, text=True, check=True
        )
        assert done.stdout == f"fencer-guest {build.version()}\n"
        with ZipFile(path) as archive:
            assert archive.testzip() is None
    path.chmod(0o755)
    alone = subprocess.run([str(path), "--version"], env={}, capture_output=True, text=True, check=True)
    assert alone.stdout == done.stdout


def test_without_a_python_to_name_the_program_stays_as_it_is() -> None:
    assert pythons.pinned(build.build(), "") == build.build()


@pytest.mark.parametrize(
    ("ran", "trouble"),
    [
        (Ran(126, error="fencer-guest needs Python 3.8 or newer; this is 3.6.8"), "this is 3.6.8"),
        (Ran(127, error="/usr/bin/env: 'python3': No such file or directory"), "'python3': No such file"),
        (Ran(None, error="/usr/local/bin/fencer-guest: No such file or directory"), "No such file"),
        (Ran(-9), "exit code -9"),
    ],
)
def test_check_runs_what_the_units_run(tmp_path: Path, ran: Ran, trouble: str) -> None:
    machine = Machine(tmp_path)
    machine.write("usr/local/bin/fencer-guest", "#!/usr/bin/python3.9\nPK")
    good = "/usr/local/bin/fencer-guest runs by /usr/bin/python3.9: fencer-guest 0.1.0"
    assert _told(machine) == ("ok", good)
    machine.program = ran
    level, text = _told(machine)
    assert level == "FAIL"
    assert text.startswith(
        "/usr/local/bin/fencer-guest does not run by /usr/bin/python3.9, so nothing is drained"
    )
    assert trouble in text


def _told(machine: Machine, run: Run | None = None) -> tuple[str, str]:
    found = judge(collect(machine.root, run or machine.run, node="k8s-1"))
    ((level, text),) = [(it.level.value, it.text) for it in found if it.subject == "program"]
    return level, text


def test_a_drain_that_cannot_even_start_is_not_called_a_success() -> None:
    """Of the codes that say that nothing ran, none is: 126 and 127 of a shell or of us, 203 of systemd."""
    lines = build.units()["fencer-guest-drain.service"].splitlines()
    (stop,) = [line for line in lines if line.startswith("ExecStop=")]
    assert stop.startswith("ExecStop=/usr/local/bin/fencer-guest drain ")
    assert "SuccessExitStatus=1" in lines

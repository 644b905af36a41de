"""What is read as root: of a file that was found, nobody else may have had a hand in it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fencer.guest import files, kubeconfig
from fencer.guest.errors import Unusable
from fencer.guest.system import Ran
from tests.guest.machine import Machine
from tests.support import missing_real_part

NOBODY = 65534
CONFIG = "etc/kubernetes/kubelet.conf"
TOKEN = "var/lib/kubelet/token"  # noqa: S105 - it opens nothing - its place


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a kubeconfig whose token is in a file."""
    machine = Machine(tmp_path)
    machine.write(TOKEN, "secret-1")
    _names(machine, f"/{TOKEN}")
    return machine


def _names(machine: Machine, token: str, **cluster: object) -> None:
    """Write the kubeconfig."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **cluster}}],
        "users": [{"name": "u", "user": {"tokenFile": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    machine.write(CONFIG, json.dumps(content))


def _read(machine: Machine) -> str:
    return kubeconfig.read(machine.root / CONFIG, lambda _: Ran(None), machine.root).token


def test_what_is_roots_all_the_way_is_read(machine: Machine) -> None:
    assert _read(machine) == "secret-1"


def _open(machine: Machine, name: str, mode: int) -> None:
    path = machine.root / name
    path.chmod(path.stat().st_mode & 0o777 | mode)


def _give(machine: Machine, name: str) -> None:
    if os.geteuid() != 0:
        missing_real_part("nobody but root can give a file away: run the tests as root")
    os.chown(machine.root / name, NOBODY, -1, follow_symlinks=False)


SYSTEMS = [".", "etc", "var", "var/lib"]
"""Their modes are the system's matter: a `chmod` of them may break the machine."""
STEPS = [*SYSTEMS, "etc/kubernetes", CONFIG, "var/lib/kubelet", TOKEN]
MOVE = "move it to a folder that is root's, and that nobody else may write"


@pytest.mark.parametrize("mode", [0o020, 0o002, 0o1777], ids=["group", "others", "as /tmp"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_others_may_write_is_refused(machine: Machine, step: str, mode: int) -> None:
    """And told: the file, the step, its mode, and what would change that."""
    _open(machine, step, mode)
    path = (machine.root / step).resolve()
    with pytest.raises(Unusable) as refusal:
        _read(machine)
    told = str(refusal.value)
    assert told.startswith(f"{machine.root / CONFIG}: ")
    assert f"{path} has owner {os.geteuid()} and mode {path.stat().st_mode & 0o7777:04o}" in told
    for_all = step in SYSTEMS or (mode == 0o1777 and path.is_dir())
    assert (f"; {MOVE}" if for_all else f": chmod go-w {path};") in told
    assert ("chmod" in told) is not for_all
    assert "--kubeconfig FILE" in told


@pytest.mark.parametrize("folder", ["tmp", "var/tmp", "dev/shm", "home/ann", "run/user/1000", "opt", "srv"])
def test_nobody_is_told_to_change_a_folder_that_is_for_all(machine: Machine, folder: str) -> None:
    machine.write(f"{folder}/token", "secret-2")
    _open(machine, folder, 0o1777 if folder in ("tmp", "var/tmp", "dev/shm") else 0o020)
    _link(machine, TOKEN, f"/{folder}/token")
    with pytest.raises(Unusable) as refusal:
        _read(machine)
    assert f"/{folder} has owner" in str(refusal.value)
    assert MOVE in str(refusal.value)
    assert "chmod" not in str(refusal.value)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_is_anothers_is_refused(machine: Machine, step: str) -> None:
    """Its owner may change its mode at any time."""
    _give(machine, step)
    change = MOVE if step in SYSTEMS else ".*: chown root "
    with pytest.raises(Unusable, match=rf"has owner {NOBODY} and mode 0[0-9]{{3}}; {change}"):
        _read(machine)


def test_of_a_link_that_is_anothers_the_link_is_to_change(machine: Machine) -> None:
    """And not what it leads to."""
    _link(machine, "etc/kubernetes/token", f"/{TOKEN}")
    _names(machine, "/etc/kubernetes/token")
    _give(machine, "etc/kubernetes/token")
    with pytest.raises(Unusable, match=r": chown -h root .*/etc/kubernetes/token"):
        _read(machine)


def _link(machine: Machine, name: str, target: str) -> None:
    path = machine.root / name
    machine.folder(path.parent)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "target", ["/var/lib/kubelet/real", "../../var/lib/kubelet/real", "../../../../../var/lib/kubelet/./real"]
)
def test_links_of_roots_are_followed(machine: Machine, target: str) -> None:
    """As installers that keep their files on another disk have them."""
    machine.write("var/lib/kubelet/real", "secret-2")
    _link(machine, "etc/kubernetes/token", target)
    _names(machine, "/etc/kubernetes/token")
    assert _read(machine) == "secret-2"


@pytest.mark.parametrize(
    "prepare",
    [
        lambda machine: _give(machine, "etc/kubernetes/token"),
        lambda machine: _open(machine, "opt/mine", 0o002),
        lambda machine: _open(machine, "opt", 0o020),
    ],
    ids=["the link", "the folder that it names", "one above"],
)
def test_a_link_that_others_can_turn_is_refused(machine: Machine, prepare: Callable[[Machine], None]) -> None:
    """Wherever it ends: here at a file of root's, through a folder that others may write."""
    _link(machine, "opt/mine/there", f"/{TOKEN}")
    _link(machine, "etc/kubernetes/token", "/opt/mine/there")
    _names(machine, "/etc/kubernetes/token")
    assert _read(machine) == "secret-1"
    prepare(machine)
    with pytest.raises(Unusable, match="others than root may change"):
        _read(machine)


def test_links_in_a_circle_are_refused(machine: Machine) -> None:
    _link(machine, TOKEN, f"/{TOKEN}")
    with pytest.raises(Unusable, match="too many links"):
        _read(machine)


@pytest.mark.parametrize(
    "token", ["/etc/shadow", "../shadow", "/etc/kubernetes/../shadow", "/etc/kubernetes/out"]
)
def test_a_token_lies_where_kubelets_keep_theirs(machine: Machine, token: str) -> None:
    """And no other secret of root's is shown to the server that the same file names."""
    machine.write("etc/shadow", "root:secret")
    _link(machine, "etc/kubernetes/out", "../shadow")
    _names(machine, token)
    with pytest.raises(Unusable, match=r"etc/shadow is in none of /etc/kubernetes, .*/var/lib/k0s"):
        _read(machine)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["a folder", "a pipe"])
def test_what_is_no_file_is_refused(machine: Machine, make: Callable[[Path], None]) -> None:
    """And nobody waits for who would write into a pipe."""
    (machine.root / TOKEN).unlink()
    make(machine.root / TOKEN)
    (machine.root / TOKEN).chmod(0o700)
    with pytest.raises(Unusable, match=r"no regular file|Is a directory"):
        _read(machine)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        ({"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ({"server": "http://api:8080"}, "no https address"),
    ],
)
def test_a_server_that_cannot_prove_who_it_is_is_refused(
    machine: Machine, cluster: dict[str, object], says: str
) -> None:
    _names(machine, f"/{TOKEN}", **cluster)
    with pytest.raises(Unusable, match=says):
        _read(machine)


def test_all_other_files_that_it_names_are_looked_at_too(machine: Machine) -> None:
    machine.write("opt/ca.crt", "x")
    _names(machine, f"/{TOKEN}", **{"certificate-authority": "/opt/ca.crt"})
    assert _read(machine) == "secret-1"
    _open(machine, "opt/ca.crt", 0o002)
    with pytest.raises(Unusable, match=r"opt/ca\.crt has owner"):
        _read(machine)


def test_what_a_person_names_is_read_as_it_is(machine: Machine) -> None:
    """It is their word that counts, and often their own file: `sudo fencer-guest check --kubeconfig ~/…`."""
    token = machine.write("opt/token", "secret-3")
    _open(machine, "opt", 0o002)
    _names(machine, str(token))
    assert kubeconfig.read(machine.root / CONFIG, lambda _: Ran(None)).token == "secret-3"  # noqa: S105 - it opens nothing


@pytest.mark.parametrize(
    "read", [files.named, lambda path: files.found(path.parent, path)], ids=["named", "found"]
)
def test_a_file_without_end_is_given_up(machine: Machine, read: Callable[[Path], str]) -> None:
    path = machine.write("large", "x")
    path.parent.chmod(0o755)
    os.truncate(path, 1 << 40)
    with pytest.raises(Unusable, match="larger than 4 MiB"):
        read(path)

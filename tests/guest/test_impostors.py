"""The whole program, as root, beside processes that pretend to be a kubelet, and servers that lie."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fencer.guest import build
from tests.controlplane.certificates import Authority
from tests.guest.serving import send, serving
from tests.support import missing_real_part

pytestmark = pytest.mark.slow
SECRET = "for-root-alone"  # noqa: S105 - of nobody
AS_A_KUBELET = 'exec -a kubelet sh -c "echo; read end" "$0"'
"""Calls itself so, says that it has begun, and stays until nobody holds the other end."""
ESCAPES = "\x1b]0;owned\x07\x1b[2J"
FORGED = "\nfencer-guest: all is well"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "fencer-guest"
    assert build.main(["--output", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


def _kubeconfig(path: Path, port: int, cluster: dict[str, object], user: dict[str, object]) -> Path:
    content = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(content))
    return path


def _run(program: Path, *words: str) -> str:
    """Return what the program says."""
    command = [sys.executable, str(program), *words]
    ran = subprocess.run(
        command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    return ran.stdout


@contextmanager
def _impostor(launcher: list[str], kubeconfig: Path) -> Iterator[None]:
    """Run a process that calls itself kubelet and names a kubeconfig."""
    command = [*launcher, "bash", "-c", AS_A_KUBELET, f"--kubeconfig={kubeconfig}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout
        assert process.stdin
        if process.stdout.readline() != b"\n":
            process.stdin.close()
            missing_real_part(f"no impostor: {process.communicate()[1].decode()!r}; run the tests as root")
        try:
            yield
        finally:
            process.stdin.close()


@pytest.mark.parametrize(
    "launcher",
    [
        ["setpriv", "--reuid=nobody", "--clear-groups"],
        ["unshare", "--mount", "--pid", "--fork"],
        ["env"],
    ],
    ids=["of another user", "root in a container", "root outside of any unit"],
)
def test_who_calls_itself_kubelet_gets_nothing_of_roots(
    program: Path, authority: Authority, tmp_path: Path, launcher: list[str]
) -> None:
    """Its kubeconfig names its own server, and a file of root's as the token that is shown there."""
    if os.geteuid() != 0:
        missing_real_part("files of root's cannot be stolen from another user: run the tests as root")
    stolen: list[str | None] = []

    def steal(handler: BaseHTTPRequestHandler) -> None:
        stolen.append(handler.headers["Authorization"])
        send(handler, 200, b"{}")

    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    with serving(authority, steal) as port:
        cluster = {"insecure-skip-tls-verify": True}
        evil = _kubeconfig(tmp_path / "evil.conf", port, cluster, {"tokenFile": str(secret)})
        with _impostor(launcher, evil):
            said = _run(program, "check", "-o", "json")
    assert stolen == []
    assert str(port) not in said


def test_a_server_that_nobody_vouches_for_gets_no_token(
    program: Path, authority: Authority, tmp_path: Path
) -> None:
    """Not even where a person named the file: whoever answers there would have the token."""
    seen: list[str] = []
    with serving(authority, lambda handler: seen.append(handler.path)) as port:
        cluster = {"insecure-skip-tls-verify": True}
        file = _kubeconfig(tmp_path / "k", port, cluster, {"token": SECRET})
        said = _run(program, "drain", "--now", "--kubeconfig", str(file), "--node", "k8s-1")
    assert seen == []
    assert said.startswith(f"fencer-guest: {file}: `insecure-skip-tls-verify`")


NAMED = {"metadata": {"name": ESCAPES + FORGED}, "status": {"nodeInfo": {"bootID": ESCAPES + FORGED}}}


@pytest.mark.parametrize(
    ("words", "status", "body"),
    [
        (["drain", "--now"], 403, {"message": ESCAPES + FORGED}),
        (["drain", "--now"], 200, NAMED),
        (["uncordon", "--timeout", "1"], 200, NAMED),
        (["check"], 403, {"message": ESCAPES + FORGED}),
    ],
    ids=["a drain is refused", "a drain reads", "an uncordon reads", "a check is refused"],
)
def test_what_a_server_says_drives_no_terminal_and_forges_no_line(
    program: Path,
    authority: Authority,
    tmp_path: Path,
    words: list[str],
    status: int,
    body: dict[str, object],
) -> None:
    with serving(authority, lambda handler: send(handler, status, json.dumps(body).encode())) as port:
        cluster = {"certificate-authority": str(authority.ca_file)}
        file = _kubeconfig(tmp_path / "k", port, cluster, {"token": "t"})
        said = _run(program, *words, "--kubeconfig", str(file), "--node", "k8s-1")
    assert "owned" in said
    assert [it for it in said if not it.isprintable() and it != "\n"] == []
    assert [line for line in said.splitlines() if line.startswith(FORGED.strip())] == []


def test_what_a_server_says_stays_json(program: Path, authority: Authority, tmp_path: Path) -> None:
    refusal = json.dumps({"message": ESCAPES}).encode()
    with serving(authority, lambda handler: send(handler, 403, refusal)) as port:
        cluster = {"certificate-authority": str(authority.ca_file)}
        file = _kubeconfig(tmp_path / "k", port, cluster, {"token": "t"})
        said = _run(program, "check", "-o", "json", "--kubeconfig", str(file), "--node", "k8s-1")
    assert "\x1b" not in said
    assert ESCAPES in [it["text"] for it in json.loads(said)["findings"] if it["subject"] == "api"]

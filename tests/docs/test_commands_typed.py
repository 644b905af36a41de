"""What README and docs/ tell people to type into a shell is typed into one, in the order of the list."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

from tests.controlplane.binaries import KUBECTL, find_or_build
from tests.docs.citations import ROOT
from tests.docs.test_commands import ALL
from tests.support.backstage import ApiBackstage
from tests.support.controlplane import running_control_plane

LINES = [line for one in ALL if one.kind == "shell" for line in one.meant()]
FOLDERS = (
    "etc", ".kube", ".local/bin", ".local/share/bash-completion/completions", ".zfunc",
    ".config/fish/completions", ".config/k9s", "kubespray/.vagrant/machines/k8s-1/virtualbox",
)  # fmt: skip
"""What is there before anybody types a line: folders of programs that people have."""


@pytest.fixture(scope="module")
def bare_api(tmp_path_factory):
    """One of its own: what is set up and taken down here is what other tests stand on."""
    with running_control_plane(tmp_path_factory.mktemp("typed-api")) as running:
        for number in (1, 2, 3):
            node = {"metadata": {"name": f"k8s-{number}"}}
            running.request("POST", "/api/v1/nodes", node)
        yield running


@pytest.fixture
def home(bare_api, tmp_path):
    """A person's home on a machine that has kubectl and fencer, and the pages' files beside them."""
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    programs = {
        "kubectl": [*find_or_build().command(KUBECTL)],
        "fencer": [sys.executable, "-m", "fencer.cli.main"],
    }
    for name, command in programs.items():
        program = tmp_path / ".local" / "bin" / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {" ".join(map(str, command))} "$@"\n')
        program.chmod(0o755)
    admins = bare_api.kubeconfig().read_text()
    for name in (".kube/config", "ADMINS", "admins.yaml"):
        (tmp_path / name).write_text(admins)
    for name in ("proxmox-token", "pve-root-ca.pem"):
        (tmp_path / name).write_text("secret\n")
    (tmp_path / "kubespray/.vagrant/machines/k8s-1/virtualbox/id").write_text(
        "636e0387-1e4f-486d-9c08-fa7e4c3622d2"
    )
    (tmp_path / "config").symlink_to(ROOT / "config")
    template = re.search(
        r"(?ms)^ *```yaml\n( *# fencer-template.yaml\n.*?)```", (ROOT / "docs/remediation.md").read_text()
    )
    (tmp_path / "fencer-template.yaml").write_text(textwrap.dedent(template[1]))
    return tmp_path


@pytest.mark.e2e
def test_each_line_does_what_it_is_for(home, bare_api):
    path = f"{home / '.local' / 'bin'}:{os.environ['PATH']}"
    for line in LINES:
        if "patch fencerremediation" in line:  # somebody has asked, and waits
            about = {"kind": "FencerRemediation", "apiVersion": "remediation.fencer.dev/v1alpha1"}
            asked = {
                **about,
                "metadata": {"name": "k8s-2", "namespace": "fencer", "finalizers": ["fencer.dev/a"]},
            }
            ApiBackstage(bare_api).send(
                "POST", "/apis/remediation.fencer.dev/v1alpha1/namespaces/fencer/fencerremediations", asked
            )
        here = line.replace("/etc/fencer", str(home / "etc" / "fencer"))
        shell = ["/bin/bash", "-e", "-o", "pipefail", "-c", here]
        own = {"HOME": str(home), "PATH": path}
        done = subprocess.run(
            shell, cwd=home, env=own, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{line}: {done.stderr}{done.stdout}"

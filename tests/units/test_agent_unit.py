"""The agent's units, as systemd itself judges them: one cluster, and one of several."""

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import missing_real_part

UNITS = Path(__file__).parents[2] / "systemd"
SINGLE, TEMPLATE = UNITS / "fencer.service", UNITS / "fencer@.service"
EXPOSURE_AT_MOST = 11
"""In tenths, on systemd's scale of 0 (hardened) to 10 (exposed); common daemons have 9.2."""

MANAGERS = ("pve-guests.service", "pve-ha-lrm.service", "libvirt-guests.service")
"""What ends the guests of a host that goes down."""
API = ("pve-cluster.service", "pvedaemon.service", "pveproxy.service")
"""What answers on https://127.0.0.1:8006."""


@pytest.fixture(scope="module", autouse=True)
def systemd_analyze():
    if shutil.which("systemd-analyze") is None:
        missing_real_part("systemd-analyze is not here; to have it: apt-get install systemd")


@pytest.fixture(params=[SINGLE, TEMPLATE], ids=["single", "instance"])
def unit(request, tmp_path):
    """A unit as it is used, with a program that exists on any machine."""
    text = re.sub(
        r"^(Exec\w+)=/usr/bin/fencer", r"\1=/bin/true", request.param.read_text(), flags=re.MULTILINE
    )
    (tmp_path / request.param.name).write_text(text)
    return tmp_path / request.param.name.replace("@", "@home")


def ask(*words):
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)


def told(unit, key):
    """Return all values of a key."""
    return " ".join(re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)).split()


def test_systemd_finds_nothing_to_say_about_it(unit):
    verified = ask("verify", str(unit))
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


def test_it_is_hardened(unit):
    template = next(unit.parent.iterdir())
    judged = ask("security", "--offline=true", f"--threshold={EXPOSURE_AT_MOST}", str(template))
    assert judged.returncode == 0, judged.stdout[-200:]


@pytest.mark.parametrize("unit", [SINGLE, TEMPLATE], ids=["single", "instance"])
def test_the_agent_outlives_what_it_started_and_the_kernel_ended(unit):
    assert told(unit, "OOMPolicy") == ["continue"]


@pytest.mark.parametrize("unit", [SINGLE, TEMPLATE], ids=["single", "instance"])
def test_the_agent_outlives_the_guests_of_its_host(unit):
    assert set(MANAGERS) <= set(told(unit, "Before"))
    assert set(API) <= set(told(unit, "After"))


def test_its_order_fits_into_that_of_a_proxmox_host(tmp_path):
    """The host's own units as they are ordered there: systemd would tell of a cycle."""
    order = ["pve-cluster", "pvedaemon", "pveproxy", "pve-ha-lrm", "pve-guests"]
    for name in order:
        before = [f"After={earlier}.service\n" for earlier, later in pairwise(order) if later == name]
        body = f"[Unit]\n{''.join(before)}[Service]\nExecStart=/bin/true\n"
        (tmp_path / f"{name}.service").write_text(body)
    text = SINGLE.read_text().replace("=/usr/bin/fencer ", "=/bin/true ")
    (tmp_path / SINGLE.name).write_text(text)
    verified = ask("verify", *[str(tmp_path / f"{name}.service") for name in [*order, "fencer"]])
    assert (verified.returncode, verified.stderr) == (0, "")


def test_an_instance_has_its_own_file_socket_and_state_and_is_the_same_otherwise():
    theirs = {"Description", "ExecStart", "StateDirectory", "#LoadCredential"}
    plain = [dict(parsed(unit, theirs)) for unit in (SINGLE, TEMPLATE)]
    reload = "ExecReload=/usr/bin/fencer config check --config /etc/fencer/{}.yaml"
    assert plain[1].pop(reload.format("%i"))
    assert plain[0].pop(reload.format("config"))
    assert plain[0] == plain[1]
    [start] = re.findall("^ExecStart=(.*)$", TEMPLATE.read_text(), re.MULTILINE)
    assert start.endswith("watch --config /etc/fencer/%i.yaml --hooks %t/fencer/%i.sock")


def test_one_that_stops_leaves_the_others_their_sockets():
    assert told(SINGLE, "RuntimeDirectoryPreserve") == told(TEMPLATE, "RuntimeDirectoryPreserve") == ["yes"]
    assert told(SINGLE, "RuntimeDirectory") == told(TEMPLATE, "RuntimeDirectory") == ["fencer"]


def parsed(unit, without):
    for line in unit.read_text().splitlines():
        key, _, value = line.partition("=")
        if value and key not in without and not key.startswith("# "):
            yield f"{key}={value}", True

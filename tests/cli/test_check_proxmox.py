"""``fencer check`` of a Proxmox endpoint as a new user meets it: the real adapter before the stand-in API."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fencer.cli.wire import Wiring
from fencer.config.settings import ProxmoxEndpoint
from fencer.core.identity import Admission
from fencer.runtime.clock import SystemClock
from fencer.runtime.election import name_of
from fencer.runtime.workers import ThreadAsker
from tests.cli.lab import Lab
from tests.support.pve import PveCluster, PveServers

LOOK = ["Sys.Audit", "VM.Audit"]
WAYS = "`fencer setup proxmox`"


class Beginner(Lab):
    """The simulated cluster, whose nodes are guests of a stand-in Proxmox.

    Args:
        version: Of Proxmox VE.
        name: Of the cluster; None: a standalone host.
        folder: For certificates and the token.
    """

    def __init__(self, folder: Path, version: str = "9.2.11", name: str | None = "home") -> None:
        super().__init__()
        self.pve = PveCluster(name, ("pve1", "pve2", "pve3") if name else ("pve1",), version=version)
        [simulated] = self.simulation.hypervisors.values()
        for seen in simulated.sweep():
            self.pve.add_guest(seen.guest.name, uuid=seen.guest.uuid)
        for node in self.simulation.cluster.nodes().views:
            self.simulation.cluster.approve(node, node.system_uuid, "anna", "2026-11-30T12:00:00Z")
        self.api = PveServers(self.pve, folder)
        self._token_file = folder / "token"
        self._token_file.write_text(self.pve.secret)
        self.written = {}
        self.groups: frozenset[str] = frozenset()
        """By which power is admitted; none: by all UUIDs."""

    def leases(self, config):
        for endpoint in config.endpoints:
            with closing(self.hypervisor(endpoint, self.clock())) as port:
                self.simulation.leases.make(name_of(endpoint.name, port.describe()))
        return super().leases(config)

    def grant(self, *privileges: str, path: str = "/") -> None:
        """Set what the token may do."""
        self.pve.access.grant(self.pve.token, path, privileges)

    def row(self, what: str = "home") -> dict[str, object]:
        """Return one row of what `fencer check` finds."""
        found = json.loads(self.run("check", "-o", "json").stdout)["findings"]
        return next(row for row in found if row["what"] == what)

    def load(self, path: Path):
        uuids = frozenset(conf.uuid for conf in self.pve.confs.values())
        power = Admission(groups=self.groups) if self.groups else Admission(uuids=uuids)
        endpoint = ProxmoxEndpoint(
            "home",
            self.api.urls,
            self.pve.name,
            self.pve.token,
            self._token_file,
            self.api.ca_file,
            power=power,
        )
        return replace(super().load(path), endpoints=(replace(endpoint, **self.written),))

    def hypervisor(self, endpoint, clock):
        return Wiring.hypervisor(self, endpoint, clock)

    def asker(self, _clock, patience_s):
        return ThreadAsker(SystemClock(), patience_s)


@pytest.fixture
def lab(tmp_path):
    beginner = Beginner(tmp_path)
    with beginner.api:
        yield beginner


@pytest.mark.parametrize(("version", "name"), [("8.4.1", "home"), ("9.2.11", "home"), ("9.2.11", None)])
def test_nothing_is_wrong_with_what_setup_printed(tmp_path, version, name):
    lab = Beginner(tmp_path, version, name)
    with lab.api:
        row = lab.row()
    assert (row["level"], row["points"], row["about"]) == ("ok", [], f"proxmox: Proxmox VE {version}")


@pytest.mark.parametrize(
    ("rights", "level", "says"),
    [
        (["VM.Audit", "VM.PowerMgmt"], "fail", ["lacks Sys.Audit on /", WAYS]),
        (["Sys.Audit", "VM.PowerMgmt"], "fail", ["lacks VM.Audit on /vms", WAYS]),
        ([], "fail", ["lacks Sys.Audit", "lacks VM.Audit", WAYS]),
        ([*LOOK, "VM.PowerMgmt", "VM.Clone"], "warn", ["more than fencer needs: VM.Clone", WAYS]),
    ],
)
def test_rights_that_are_missing_fail_and_rights_too_many_are_named(lab, rights, level, says):
    lab.grant(*rights)
    row = lab.row()
    assert row["level"] == level
    for text in says:
        assert text in " ".join(row["points"])


def test_a_token_that_sees_nothing_is_not_said_to_be_ready(lab):
    lab.grant("Sys.Audit")
    done = lab.run("check")
    assert (done.exit_code, "Not ready to be armed: home." in done.output) == (1, True)
    assert lab.row("guests")["note"] == "the rest cannot be known before home is in order"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"cluster": "hmoe"}, "belongs to the cluster home, not to hmoe"),
        ({"cluster": None}, "Write cluster: home."),
    ],
)
def test_another_cluster_than_was_configured_fails(lab, written, says):
    lab.written = written
    row = lab.row()
    assert (row["level"], says in row["points"][0]) == ("fail", True)


def test_a_host_that_says_no_cluster_is_asked_after(tmp_path):
    lab = Beginner(tmp_path, name=None)
    lab.written = {"cluster": "home"}
    with lab.api:
        assert "or is it standalone (cluster: standalone)?" in lab.row()["points"][0]


def test_a_wrong_fingerprint_is_shown_as_proxmox_shows_the_right_one(lab):
    lab.written = {"ca_file": None, "fingerprints": (":".join(["AB"] * 32),) * 3}
    row = lab.row()
    assert row["level"] == "fail"
    for host in lab.pve.hosts:
        assert f"but {lab.api.fingerprint(host)}: before you write that, ask" in row["note"]
    lab.written["fingerprints"] = tuple(lab.api.fingerprint(host) for host in lab.pve.hosts)
    assert lab.row()["level"] == "ok"


def test_a_certificate_that_nobody_trusts_is_told_once_for_all_servers(lab):
    lab.written = {"ca_file": None}
    note = str(lab.row()["note"])
    assert note.startswith(f"home ({', '.join(lab.api.urls)}): no answer: its certificate is not trusted: ")
    assert "signed by fencer-test-ca, and no ca_file is given: that CA's certificate would do" in note


NOWHERE = Path("/nowhere/file")


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (
            {"ca_file": NOWHERE},
            "home: ca_file /nowhere/file: is not there, or cannot be read. It has to be a copy",
        ),
        ({"token_file": NOWHERE}, "home: token_file /nowhere/file: cannot be read: No such file"),
        ({"token_id": "fencer@pve!agnet"}, "the token fencer@pve!agnet was refused (Authentication failed!)"),
        ({"servers": ("https://127.0.0.1:1",)}, "no answer: Failed to establish a new connection: "),
    ],
    ids=["ca", "token-file", "token", "port"],
)
def test_what_leads_nowhere_fails_with_its_reason(lab, written, says):
    lab.written = written
    row = lab.row()
    assert (row["level"], says in row["note"]) == ("fail", True), row


def test_an_expired_token_fails(lab):
    lab.pve.access.expire(lab.pve.token)
    row = lab.row()
    assert (row["level"], "Is it expired" in row["note"]) == ("fail", True)


def test_a_host_that_is_off_is_named_and_the_rest_goes_on(lab):
    lab.pve.host_dies("pve3")
    lab.pve.clock.advance(20)
    row = lab.row()
    assert row["level"] == "warn"
    assert row["points"] == ["Offline: pve3. Guests there cannot be read, nor found by their UUID."]


def test_a_guest_that_its_host_gives_too_little_time_is_named(lab):
    """As it comes it is enough; a time of its own, or HA's, may not be."""
    assert lab.row("shutdown")["level"] == "ok"
    first, second, *rest = lab.pve.confs.values()
    first.startup, second.startup = "order=2,down=60,up=30", "order=1,up=600"
    row = lab.row("shutdown")
    assert (row["level"], row["points"]) == ("note", [f"{first.name}: 60 s (set at the guest)"])
    assert row["about"] == f"{1 + len(rest)} of {2 + len(rest)} guests have 180 s"
    assert row["try"] == [
        f"qm set {first.vmid} --startup down=180   (and what its startup setting has already)"
    ]

    first.startup = "down=300"
    lab.pve.ha.add(second.vmid)
    row = lab.row("shutdown")
    assert row["points"] == [f"{second.name}: 60 s (by HA, for every guest)"]
    assert row["try"] == ["fencer shutdown --host HOST   (before the host goes down: it drains first)"]


def test_a_guest_whose_hook_was_forgotten_is_named_and_none_at_all_is_a_choice(lab):
    found = json.loads(lab.run("check", "-o", "json").stdout)["findings"]
    assert "hook" not in {row["what"] for row in found}
    first, second, *rest = lab.pve.confs.values()
    for conf in (first, *rest):
        conf.hookscript = "local:snippets/fencer-hook"
    second.hookscript = "local:snippets/another"
    row = lab.row("hook")
    assert (row["level"], row["note"].startswith(f"{second.name}: fencer is not told")) == ("note", True)
    assert row["try"] == [f"fencer setup hook --vmid {second.vmid} --storage NAME"]
    second.hookscript = "local:snippets/fencer-hook"
    assert lab.row("hook")["level"] == "ok"


def test_guests_are_admitted_by_tag_and_pool_and_each_is_named_with_what_admits_it(lab):
    lab.groups = frozenset({"tag:fencer", "pool:k8s"})
    lab.grant(*LOOK, "VM.PowerMgmt", "Pool.Audit")
    first, second, third = lab.pve.confs.values()
    first.tags, second.pool, third.tags = ("fencer",), "k8s/lab", ("web",)
    row = lab.row("power")
    assert (row["level"], row["about"]) == ("warn", "2 of 3 guests may be stopped")
    assert row["note"].startswith(f"{third.name}: if paused, fencer may not stop")
    assert row["points"] == [f"by tag:fencer: {first.name}; by pool:k8s: {second.name}"]
    assert row["try"] == [
        f"under home: `power: {{uuids: [{third.uuid}]}}`, or pool k8s, or tag fencer, given to it in "
        "Proxmox; then `fencer approve NODE`"
    ]
    third.pool = "k8s"
    row = lab.row("power")
    assert (row["level"], row["note"]) == (
        "ok",
        f"by tag:fencer: {first.name}; by pool:k8s: {second.name}, {third.name}",
    )


def test_a_tag_that_no_guest_has_is_told_with_the_one_that_is_written_alike(lab):
    lab.groups = frozenset({"tag:fencer", "pool:k8s"})
    lab.grant(*LOOK, "VM.PowerMgmt", "Pool.Audit")
    for conf in lab.pve.confs.values():
        conf.tags, conf.pool = ("Fencer",), "k8s"
    found = json.loads(lab.run("check", "-o", "json").stdout)["findings"]
    [said] = [row for row in found if row["about"] == "home: tag:fencer"]
    assert said["level"] == "warn"
    assert said["note"].endswith("it admits no guest; there is tag:Fencer, and case counts")
    assert "home: pool:k8s" not in [row["about"] for row in found]


def test_a_pool_that_the_token_may_not_see_is_told_with_the_right(lab):
    lab.groups = frozenset({"pool:k8s"})
    for conf in lab.pve.confs.values():
        conf.pool = "k8s"
    assert "lacks Pool.Audit on /pool/k8s" in lab.row()["points"][0]
    assert "0 of 3 guests" in lab.row("power")["about"]


def test_a_token_without_the_right_to_power_is_told_where_a_tag_admits_it(lab):
    lab.groups = frozenset({"tag:fencer"})
    lab.grant(*LOOK)
    for conf in lab.pve.confs.values():
        conf.tags = ("fencer",)
    home, power = rights_and_power(lab)
    assert home == ""
    assert "may not stop them" in power
    assert "by tag:fencer" not in power
    assert "for home: `fencer setup proxmox --power`" in power


def rights_and_power(lab):
    """Return what both rows say that speak of power, with what to try."""
    home, power = lab.row(), lab.row("power")
    return " ".join(home["points"]), " ".join(
        (power["about"], power["note"], *power["points"], *power["try"])
    )


def test_a_right_to_power_that_the_configuration_gives_no_use_is_told_alike_in_both_rows(lab):
    """`setup proxmox --power`, and an example without `power:`: neither row calls the right too much."""
    lab.written = {"power": Admission()}
    home, power = rights_and_power(lab)
    assert "the configuration admits none: name them in a `power:` here" in home
    assert "more than fencer needs" not in home
    assert power.startswith("0 of 3 guests may be stopped")
    assert "under home: `power: {uuids: [" in power
    assert "setup proxmox --power" not in power  # the right is there
    lab.written = {}
    assert (lab.row()["level"], lab.row("power")["level"]) == ("ok", "ok")


def test_guests_that_are_admitted_and_a_token_that_may_not_are_told_once(lab):
    """Not by both rows, and nobody is called admitted beside that."""
    lab.grant(*LOOK)
    home, power = rights_and_power(lab)
    assert (lab.row()["level"], home) == ("ok", "")
    assert power.startswith("0 of 3 guests may be stopped")
    assert "by uuids" not in power
    assert "for home: `fencer setup proxmox --power`" in power
    assert "uuids: [" not in power  # they are admitted


def test_neither_admitted_nor_allowed_names_both_ways(lab):
    lab.grant(*LOOK)
    lab.written = {"power": Admission()}
    _, power = rights_and_power(lab)
    assert "under home: `power: {uuids: [" in power
    assert "for home: `fencer setup proxmox --power`" in power


def test_a_right_over_some_guests_counts_for_those_alone(lab):
    """As `setup proxmox --power --pool NAME` gives it."""
    first, *rest = lab.pve.confs.values()
    lab.grant(*LOOK)
    lab.grant(*LOOK, "VM.PowerMgmt", path=f"/vms/{first.vmid}")
    home, power = rights_and_power(lab)
    assert home == ""
    assert power.startswith("1 of 3 guests may be stopped")
    assert f"are not enough to power {', '.join(conf.name for conf in rest)}" in power

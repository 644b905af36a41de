"""``fencer setup hook``, where `pvesh` and `ssh` are stand-ins that share one cluster's state."""

import hashlib
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.errors import ConfigError, HypervisorProtocol, HypervisorUnreachable
from fencer.setup.hook import carry_out, make_plan
from fencer.setup.hosts import read_hosts
from tests.setup.proxmox_tools import Cluster

HOOK = Path(__file__).parents[2] / "config" / "proxmox" / "fencer-hook"
VOLUME = "nas:snippets/fencer-hook"
BOTH = {"101": VOLUME, "102": VOLUME}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    cluster = Cluster(tmp_path)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    return cluster


@pytest.fixture
def own(cluster):
    """The same, where the storage is each host's own, and nothing lies there yet."""
    cluster.unshare()
    return cluster


def run(cluster, *words):
    words = ["--storage", "nas", "--etc-pve", str(cluster.etc_pve), *words]
    result = CliRunner().invoke(cli, ["setup", "hook", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_both(cluster, *words):
    return run(cluster, "--vmid", "101,102", *words)


def refused(cluster, text, *words, code=2):
    """Nothing was changed anywhere, and the text was said."""
    before = cluster.files
    result = run_both(cluster, *words)
    assert result.exit_code == code, result.output
    assert text in result.stderr
    assert not cluster.hooks
    assert cluster.files == before
    return result.stderr


@pytest.mark.parametrize("which", ["folder", "snippets", "script"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_a_place_that_others_can_write_is_warned_of(cluster, which, mode):
    """Proxmox runs, as root on every host, whatever lies there by that name."""
    run_both(cluster)
    snippets = cluster.file.parent
    place = {"folder": snippets.parent, "snippets": snippets, "script": cluster.file}[which]
    place.chmod(stat.S_IMODE(place.stat().st_mode) | mode)
    for words in ((), ("--print",)):
        result = run_both(cluster, *words)
        assert result.exit_code == 0
        warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
        assert any(f"pve1: {place} can be written by others than root" in line for line in warnings), warnings
        assert "runs as root on every host" in warnings[0]


def test_a_place_that_only_root_can_write_is_not(cluster):
    assert "warning" not in run_both(cluster).stderr


class TestAStorageThatIsALink:
    """Its mode 0777 means nothing. What it leads to counts, and who may put another in its place."""

    @pytest.fixture
    def target(self, cluster):
        """Root has linked the storage's folder to another place: relatively, as `ln -sr` does."""
        target = cluster.folder.parent / "disk" / "pve" / "nas"
        target.parent.mkdir(parents=True)
        cluster.folder.rename(target)
        cluster.folder.symlink_to(target.relative_to(cluster.folder.parent))
        run_both(cluster)
        return target

    @staticmethod
    def warnings(cluster):
        return [line for line in run_both(cluster).stderr.splitlines() if line.startswith("warning: ")]

    def test_roots_own_is_not_warned_of(self, cluster, target):
        assert (target / "snippets" / "fencer-hook").is_file()
        assert self.warnings(cluster) == []

    @pytest.mark.parametrize("up", [0, 1, 2])
    def test_what_it_leads_to_is_judged_on_its_whole_way(self, cluster, target, up):
        place = (target, *target.parents)[up]
        place.chmod(0o777)
        (warning, *_) = self.warnings(cluster)
        assert f"pve1: {place} can be written by others than root" in warning

    @pytest.mark.usefixtures("target")
    def test_the_folder_that_holds_it_is_judged(self, cluster):
        holder = cluster.folder.parent
        holder.chmod(0o777)
        try:
            assert f"pve1: {holder} can be written" in self.warnings(cluster)[0]
        finally:
            holder.chmod(0o700)

    @pytest.mark.usefixtures("target")
    def test_one_of_somebody_elses_can_be_led_elsewhere(self, cluster):
        if os.geteuid():
            pytest.skip("only root can give a link to somebody else: run as root")
        os.lchown(cluster.folder, 65534, 65534)
        assert f"pve1: {cluster.folder} can be written" in self.warnings(cluster)[0]

    def test_one_that_leads_nowhere_or_to_itself_comes_to_an_end(self, cluster):
        script = make_plan([101], "nas", etc_pve=cluster.etc_pve).script
        cluster.folder.rmdir()
        for leads in ("gone", cluster.folder.name):
            cluster.folder.symlink_to(leads)
            assert (
                subprocess.run(["sh", "-c", script.look_exposed()], timeout=60, check=False).returncode == 0
            )
            cluster.folder.unlink()


def test_a_sticky_script_that_others_can_write_is_warned_of(cluster):
    """Sticky keeps others from renaming what is in a folder; of a file it means nothing."""
    run_both(cluster)
    cluster.file.chmod(0o1777)
    assert f"pve1: {cluster.file} can be written" in run_both(cluster).stderr


class TestOnSharedStorage:
    def test_each_guest_gets_it_wherever_it_is(self, cluster):
        result = run_both(cluster)
        assert result.exit_code == 0, result.output
        assert cluster.hooks == BOTH
        assert cluster.file.read_bytes() == HOOK.read_bytes()
        assert stat.S_IMODE(cluster.file.stat().st_mode) == 0o755
        assert [path.name for path in cluster.file.parent.iterdir()] == ["fencer-hook"]

    def test_twice_is_once(self, cluster):
        run_both(cluster)
        there = cluster.file.stat()
        cluster.change(calls=[])
        assert "had it already" in run_both(cluster).output
        assert {words[0] for words in cluster.calls("pvesh")} == {"get"}
        assert cluster.file.stat() == there

    def test_a_host_that_does_not_really_share_it_keeps_guests_from_getting_it(self, cluster):
        """Its folder is there, but nobody mounted it: a guest could not start there any more."""
        cluster.folder_on("pve3").mkdir()
        cluster.change(sharing=["pve2"])
        result = run_both(cluster)
        assert result.exit_code == 2
        assert f"pve3 (10.0.0.13): {cluster.file} is not there" in result.stderr
        assert not cluster.hooks
        cluster.change(sharing=["pve2", "pve3"])
        assert run_both(cluster).exit_code == 0
        assert cluster.hooks == BOTH

    def test_a_host_without_its_folder_is_found_before_anything_is_written(self, cluster):
        cluster.change(sharing=["pve2"])
        refused(cluster, f"pve3 (10.0.0.13) has no {cluster.folder}. Mount it there first")

    def test_a_host_that_is_offline_has_what_the_storage_holds(self, cluster):
        cluster.host("pve3", online=0)
        cluster.change(silent=["pve3"])
        result = run_both(cluster)
        assert result.exit_code == 0
        assert "pve3 (10.0.0.13): is offline and cannot be looked at" in result.output
        assert cluster.hooks == BOTH

    def test_a_guest_on_a_host_that_is_offline_is_named_before_anybody_is_asked(self, cluster):
        cluster.host("pve2", online=0)
        cluster.change(silent=["pve2"])
        refused(cluster, "102 is on pve2, which is offline")

    def test_an_older_script_is_replaced(self, cluster):
        cluster.lay("pve1", b"#!/bin/sh\nexit 0\n")
        run_both(cluster)
        assert cluster.file.read_bytes() == HOOK.read_bytes()


class TestOnStorageOfEachHost:
    @pytest.mark.parametrize(
        ("content", "mode", "why"),
        [
            (b"", None, "is not there"),
            (b"#!/bin/sh\nexit 0\n", 0o755, "is another version"),
            (HOOK.read_bytes(), 0o644, "cannot be executed (sh: "),
        ],
    )
    @pytest.mark.parametrize("host", ["pve2", "pve3"])
    def test_one_host_without_the_same_script_refuses_all(self, own, host, content, mode, why):
        """On that host no guest could start, be migrated to, or be recovered."""
        for other in {"pve2", "pve3"} - {host}:
            own.lay(other, HOOK.read_bytes())
        if mode:
            own.lay(host, content, mode)
        said = refused(own, f"{host} ({own.state['hosts'][host]}): {own.file} {why}")
        assert "--copy puts it there" in said
        assert f"{other} (" not in said

    def test_where_every_host_has_it_the_guests_get_it(self, own):
        for host in ("pve2", "pve3"):
            own.lay(host, HOOK.read_bytes())
        assert run_both(own).exit_code == 0
        assert own.hooks == BOTH
        assert own.file.read_bytes() == HOOK.read_bytes()

    def test_what_is_not_ours_is_not_run(self, own, tmp_path):
        own.lay("pve2", f"#!/bin/sh\ntouch {tmp_path / 'run'}\n".encode())
        refused(own, "is another version")
        assert not (tmp_path / "run").exists()

    def test_copy_puts_it_on_every_host_before_a_guest_is_given_it(self, own):
        own.lay("pve2", b"old")
        result = run_both(own, "--copy")
        assert result.exit_code == 0, result.output
        for host in ("pve1", "pve2", "pve3"):
            assert own.file_on(host).read_bytes() == HOOK.read_bytes()
            assert stat.S_IMODE(own.file_on(host).stat().st_mode) == 0o755
            assert [path.name for path in own.file_on(host).parent.iterdir()] == ["fencer-hook"]
        assert own.hooks == BOTH
        calls = own.state["calls"]
        first = next(number for number, words in enumerate(calls) if words[:2] == ["pvesh", "set"])
        assert not [words for words in calls[first:] if words[0] == "ssh"]

    def test_a_newer_script_gets_to_every_host_by_the_same_command(self, own):
        for host in ("pve1", "pve2", "pve3"):
            own.lay(host, b"#!/bin/sh\nexit 0\n")
        for guest in ("pve1/qemu/101", "pve2/qemu/102"):
            own.answer(f"/nodes/{guest}/config", hookscript=VOLUME)
        assert "had it already" in run_both(own, "--copy").output
        assert {own.file_on(host).read_bytes() for host in ("pve1", "pve2", "pve3")} == {HOOK.read_bytes()}
        assert {words[0] for words in own.calls("pvesh")} == {"get"}

    def test_a_copy_that_fails_leaves_the_guests_alone_and_again_finishes_it(self, own):
        own.folder_on("pve3").rmdir()
        result = run_both(own, "--copy")
        assert result.exit_code == 2
        assert "pve2 (10.0.0.12): " in result.stdout
        assert f"pve3 (10.0.0.13): {own.file} " in result.stderr
        assert not own.hooks
        own.folder_on("pve3").mkdir()
        assert run_both(own, "--copy").exit_code == 0
        assert own.hooks == BOTH

    def test_a_host_that_dies_amid_copying_leaves_the_guests_alone(self, own):
        plan = make_plan([101, 102], "nas", copy=True, etc_pve=own.etc_pve)
        own.change(dead=["pve3"])
        with pytest.raises(HypervisorUnreachable, match=r"No route to host.*\nNo guest was given the script"):
            list(carry_out(plan))
        assert not own.hooks

    def test_a_copy_that_arrives_in_part_replaces_nothing(self, own, tmp_path):
        """Half of it would run as well: without arguments it does nothing."""
        own.lay("pve2", b"old")
        plan = make_plan([101, 102], "nas", copy=True, etc_pve=own.etc_pve)
        half = tmp_path / "half"
        half.write_bytes(b"#!/bin/sh\n")
        script = replace(plan.script, source=half)
        with pytest.raises(ConfigError, match="did not arrive whole"):
            list(carry_out(replace(plan, script=script)))
        assert own.file_on("pve2").read_bytes() == b"old"
        assert [path.name for path in own.file_on("pve2").parent.iterdir()] == ["fencer-hook"]
        assert not own.hooks

    def test_a_host_that_is_offline_is_named_and_not_asked(self, own):
        own.host("pve3", online=0)
        own.change(silent=["pve3"])
        refused(own, "pve3 cannot be checked while offline", "--copy")
        assert not own.calls("ssh")

    def test_a_single_host_needs_no_other(self, own):
        api = own.state["api"]
        api["/cluster/status"] = [row for row in api["/cluster/status"] if row["name"] == "pve1"]
        own.change(api=api)
        assert run(own, "--vmid", "101").exit_code == 0
        assert own.hooks == {"101": VOLUME}
        assert not own.calls("ssh")


class TestTheWayToOtherHosts:
    def test_keys_that_only_proxmox_knows_are_enough(self, cluster):
        assert run_both(cluster).exit_code == 0
        asked = {word for words in cluster.calls("ssh") for word in words}
        assert {"HostKeyAlias=pve2", "HostKeyAlias=pve3", "root@10.0.0.12", "root@10.0.0.13"} <= asked

    def test_before_2024_the_keys_are_merged(self, cluster):
        cluster.forget_keys()
        refused(cluster, "Host key verification failed", code=3)
        cluster.change(merged=["pve2", "pve3"])
        assert run_both(cluster).exit_code == 0

    def test_an_address_of_ipv6(self, cluster):
        cluster.change(hosts=cluster.state["hosts"] | {"pve2": "fd00::12"})
        cluster.host("pve2", ip="fd00::12")
        assert run_both(cluster).exit_code == 0
        assert cluster.hooks == BOTH

    def test_a_key_that_nobody_knows(self, cluster):
        (cluster.etc_pve / "nodes/pve3/ssh_known_hosts").write_text("")
        said = refused(cluster, "pve3 (10.0.0.13): root's ssh fails: Host key verification failed. ", code=3)
        assert "`pvecm updatecerts`" in said
        assert "Try: ssh -e none -o BatchMode=yes " in said

    def test_a_key_that_changed(self, cluster):
        cluster.write_key("pve3", "ssh-rsa THE-OLD-ONE")
        said = refused(cluster, "Host key for pve3 has changed", code=3)
        assert "@@" not in said

    def test_a_key_of_ours_that_is_not_let_in(self, cluster):
        cluster.change(denied=["pve2"])
        said = refused(
            cluster,
            "root@10.0.0.12: Permission denied (publickey,password). `pvecm updatecerts` on pve2 and",
            code=3,
        )
        assert said.count("pve2 (10.0.0.12)") == 1

    def test_hosts_that_are_not_reached_are_all_named(self, own):
        own.change(dead=["pve2", "pve3"])
        said = refused(
            own, "pve2 (10.0.0.12): root's ssh fails: ssh: connect to host 10.0.0.12 port 22", code=3
        )
        assert "connect to host 10.0.0.13 port 22: No route to host. Try: ssh" in said

    def test_a_host_that_does_not_answer_is_told_as_such(self, cluster):
        cluster.change(silent=["pve2"])
        with pytest.raises(HypervisorUnreachable, match=r"^pve2 \(10.0.0.12\): did not end within 0.5 s"):
            read_hosts(cluster.etc_pve)["pve2"].run("true", patience_s=0.5)

    def test_without_quorum_nothing_is_tried(self, cluster):
        cluster.host("home", quorate=0)
        refused(cluster, "no quorum here", code=3)
        assert not cluster.calls("ssh")


class TestPrint:
    @pytest.mark.parametrize("shared", [True, False])
    def test_what_it_prints_does_what_it_would_have_done(self, cluster, shared):
        if not shared:
            cluster.unshare()
        result = run_both(cluster, "--copy", "--print")
        assert result.exit_code == 0, result.output
        assert not cluster.files
        assert not cluster.hooks
        assert {words[0] for words in cluster.calls("pvesh")} == {"get"}
        subprocess.run(["sh", "-e"], input=result.stdout, text=True, check=True)
        pasted = cluster.files
        assert cluster.hooks == BOTH
        assert len(pasted) == (1 if shared else 3)
        assert "had it already" in run_both(cluster).output

    def test_what_it_prints_ends_where_a_host_would_not_have_it(self, cluster):
        printed = run_both(cluster, "--print").stdout
        cluster.folder_on("pve3").mkdir()
        cluster.change(sharing=["pve2"])
        assert subprocess.run(["sh", "-e"], input=printed, text=True, check=False).returncode
        assert not cluster.hooks

    def test_what_a_guest_loses_is_no_line_to_paste(self, cluster):
        cluster.answer("/nodes/pve2/qemu/102/config", hookscript="local:snippets/gpu.pl")
        result = run_both(cluster, "--replace", "--print")
        assert "102: loses its hookscript local:snippets/gpu.pl" in result.stderr
        assert "gpu.pl" not in result.stdout


class TestStorage:
    def test_without_snippets_it_is_refused_with_what_would_help(self, cluster):
        cluster.answer("/storage/nas", content="iso,vztmpl")
        refused(cluster, "`pvesm set nas --content iso,vztmpl,snippets`")

    def test_one_that_some_host_does_not_have_is_refused_although_it_is_shared(self, cluster):
        cluster.answer("/storage/nas", nodes="pve1,pve2")
        refused(cluster, "does not exist on pve3")

    @pytest.mark.parametrize(
        "traits", [{"disable": 1}, {"path": None}, {"content-dirs": "snippets=/hooks"}], ids=str
    )
    def test_one_where_the_file_would_not_be_found_is_refused(self, cluster, traits):
        cluster.answer("/storage/nas", **traits)
        refused(cluster, "nas: ")

    def test_where_the_script_does_not_run_no_guest_gets_it(self, cluster, tmp_path):
        """Its Python is not there: then each start of a guest would fail."""
        broken = HOOK.read_bytes().replace(b"#!/usr/bin/python3", b"#!/nowhere/python3", 1)
        source = tmp_path / "broken"
        source.write_bytes(broken)
        plan = make_plan([101, 102], "nas", etc_pve=cluster.etc_pve)
        script = replace(plan.script, source=source, digest=hashlib.sha256(broken).hexdigest())
        with pytest.raises(ConfigError, match="or the Python of its first line is missing"):
            list(carry_out(replace(plan, script=script)))
        assert not cluster.hooks
        assert not cluster.files


class TestGuests:
    def test_another_hookscript_is_not_taken_away_without_a_word(self, cluster):
        cluster.answer("/nodes/pve2/qemu/102/config", hookscript="local:snippets/gpu.pl")
        result = run_both(cluster)
        assert result.exit_code == 2
        assert "102 has local:snippets/gpu.pl" in result.stderr
        assert cluster.hooks == {"102": "local:snippets/gpu.pl"}
        result = run_both(cluster, "--replace")
        assert result.exit_code == 0
        assert "102: loses its hookscript local:snippets/gpu.pl" in result.output
        assert cluster.hooks["102"] == VOLUME

    def test_one_that_is_locked_is_named_before_anything_is_written(self, cluster):
        cluster.answer("/nodes/pve2/qemu/102/config", lock="backup")
        refused(cluster, "102 is locked (backup)")

    @pytest.mark.parametrize(
        ("vmid", "text"), [("999", "no such guest"), ("200", "is a container"), ("x", "101,102")]
    )
    def test_a_number_that_is_no_virtual_machine_changes_nothing(self, cluster, vmid, text):
        result = run(cluster, "--vmid", f"101,{vmid}")
        assert result.exit_code == 2
        assert text in result.stderr
        assert not cluster.hooks

    def test_one_that_does_not_take_it_is_no_success(self, cluster):
        cluster.change(deaf=["101"])
        result = run(cluster, "--vmid", "101")
        assert result.exit_code == 3
        assert "101: its hookscript reads '' after it was set" in result.stderr

    def test_half_done_is_told_and_again_finishes_it(self, cluster):
        cluster.change(busy=["102"])
        result = run_both(cluster)
        assert result.exit_code == 3
        assert "can't lock file '/var/lock/qemu-server/lock-102.conf' - got timeout" in result.stderr
        assert "101 has it, 102 does not have it. Run the same command again" in result.stderr
        assert cluster.hooks == {"101": VOLUME}
        cluster.change(busy=[])
        assert "102: has it\n" in run_both(cluster).stdout
        assert cluster.hooks == BOTH

    def test_one_that_moved_meanwhile_is_told_and_found_again(self, cluster):
        plan = make_plan([101, 102], "nas", etc_pve=cluster.etc_pve)
        api = cluster.state["api"]
        api["/nodes/pve3/qemu/102/config"] = api.pop("/nodes/pve2/qemu/102/config")
        api["/cluster/resources"][1]["node"] = "pve3"
        cluster.change(api=api)
        with pytest.raises(HypervisorProtocol, match="101 has it, 102 cannot be read on pve2"):
            list(carry_out(plan))
        assert run_both(cluster).exit_code == 0
        assert cluster.hooks == BOTH

    def test_what_pvesh_says_of_its_usage_is_left_out(self, own):
        plan = make_plan([102], "nas", copy=True, etc_pve=own.etc_pve)
        with pytest.raises(
            Exception, match=f"script '{VOLUME}' does not exist\n102 does not have it"
        ) as refusal:
            list(carry_out(replace(plan, puts=())))
        assert "<api_path>" not in str(refusal.value)


def test_a_machine_without_proxmox_is_told_where_to_go(cluster, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    result = run(cluster, "--vmid", "101")
    assert result.exit_code == 2
    assert "Run this as root on a host of the Proxmox cluster" in result.stderr

"""``fencer check``: what fails, what is only a warning, and that each failure says what to try."""

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from fencer.cli.findings import Level, cluster_finding, granting
from fencer.cli.stops import DRAIN_INSIDE_S, unread_finding
from fencer.cli.trials import binding_findings

from fencer.config import secret_files
from fencer.config.settings import AdapterEndpoint, HookSettings, PowerWitness, PreStop
from fencer.core import annotations as keys
from fencer.core.model import OUT_OF_SERVICE, Doubt, Doubted, FenceMark, PowerState, Taint
from fencer.core.policy import Mode, Policy
from fencer.errors import (
    ClusterDenied,
    ClusterProtocol,
    ClusterUnreachable,
    ConfigError,
    FencerError,
    GuestNotFound,
    HypervisorDenied,
    HypervisorUnreachable,
)
from fencer.hypervisors.guarded import Guarded
from fencer.ports import ClusterInfo, Credential, EndpointInfo, Roster, StopSettings
from fencer.simulation.cluster import KEY
from fencer.simulation.faults import What
from tests.cli.lab import RENEWAL, Lab, Otherwise, in_ops
from tests.core.build import evidence, observation


def findings(lab):
    result = lab.run("check", "-o", "json")
    told = json.loads(result.stdout)
    return {one["what"]: one for one in told["findings"]}, told, result.exit_code


def test_all_is_well():
    lab = Lab()
    lab.passes(30, watched=True)
    rows, told, code = findings(lab)
    assert code == 0
    assert told["ready"] is True
    assert {row["level"] for row in rows.values()} == {"ok", "note"}


def broken_cluster(lab):
    lab.breaks(What.API_DOWN)


def broken_hypervisor(lab):
    lab.breaks(What.DENIED)


def missing_right(lab):
    lab.simulation.cluster.missing = {"delete pods"}


def no_journal(lab):
    lab.journal = Path("/nowhere/at/all/journal.jsonl")


@pytest.mark.parametrize(
    ("breaking", "what"),
    [
        (broken_cluster, "kubernetes"),
        (missing_right, "kubernetes"),
        (broken_hypervisor, "lab"),
        (no_journal, "journal"),
    ],
)
def test_a_failure_is_told_with_what_to_try_and_code_1(breaking, what):
    lab = Lab()
    breaking(lab)
    rows, told, code = findings(lab)
    assert code == 1
    assert told["ready"] is False
    assert rows[what]["level"] == "fail"
    assert rows[what]["try"]
    assert what in told["verdict"]


KUBECONFIG = Path("/etc/fencer/kubeconfig")


@pytest.mark.parametrize(("serious", "level", "code"), [(True, "fail", 1), (False, "warn", 0)])
def test_a_secret_that_others_can_read_is_named_with_what_to_type(serious, level, code):
    lab = Lab()
    lab.passes(30, watched=True)
    lab.exposed[KUBECONFIG] = (secret_files.Finding("can be read by everybody", "chmod 0600", serious),)
    rows, told, ended = findings(lab)
    assert (rows["secrets"]["level"], rows["secrets"]["note"]) == (level, "can be read by everybody")
    assert rows["secrets"]["try"] == ["chmod 0600"]
    assert (told["ready"], ended) == (not code, code)


SSH_KEY = Path("/etc/fencer/ssh_key")


def test_a_key_that_a_uri_names_is_looked_at_as_well():
    lab = Lab()
    lab.uri = f"qemu+ssh://fencer@lab1/system?keyfile={SSH_KEY}"
    rows, told, _ = findings(lab)
    assert (rows["secrets"]["about"], rows["secrets"]["level"]) == ("2 files", "ok")
    lab.exposed[SSH_KEY] = (secret_files.Finding("can be written by everybody", "chmod 0600"),)
    rows, told, ended = findings(lab)
    assert (rows["secrets"]["about"], rows["secrets"]["level"]) == (SSH_KEY.name, "fail")
    assert (told["ready"], ended) == (False, 1)


def test_a_key_that_is_not_there_is_nothing_to_object_to():
    """Ssh goes on without, and TLS where the host asks for none; the endpoint's own row tells."""
    lab = Lab()
    lab.uri = f"qemu+ssh://fencer@lab1/system?keyfile={SSH_KEY}"
    lab.exposed[SSH_KEY] = (secret_files.Finding("no such file", f"ls -l {SSH_KEY}", missing=True),)
    rows, _, _ = findings(lab)
    assert (rows["secrets"]["about"], rows["secrets"]["level"]) == ("1 file", "ok")


def test_an_address_that_nobody_can_read_is_told_as_any_that_fails():
    lab = Lab()
    lab.uri = "qemu+ssh://[::1/system"
    broken_hypervisor(lab)
    rows, _, code = findings(lab)
    assert (rows["lab"]["level"], code) == ("fail", 1)
    assert rows["lab"]["try"] == [], "there is no command that tries it"


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("fencer@127.0.0.1:22022/system", "ssh -p 22022 fencer@127.0.0.1 true"),
        (
            "fencer@lab1:22022/system?keyfile=/etc/fencer/ssh%20key&no_tty=1",
            "ssh -p 22022 -i '/etc/fencer/ssh key' fencer@lab1 true",
        ),
        ("[2001:db8::1]:22022/system", "ssh -p 22022 2001:db8::1 true"),
        ("lab1/system?command=/opt/bin/ssh", "/opt/bin/ssh lab1 true"),
    ],
)
def test_where_ssh_may_be_in_the_way_the_command_that_tries_it_is_one(place, command):
    lab = Lab()
    lab.uri = f"qemu+ssh://{place}"
    broken_hypervisor(lab)
    rows, _, _ = findings(lab)
    assert rows["lab"]["try"] == [f"{command}   (as fencer's user; it must not ask anything)"]


class Answering(Lab):
    """A lab whose hypervisor describes itself in another way."""

    def __init__(self, describe) -> None:
        super().__init__()
        self.sweep = None
        self._describe = describe

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return SimpleNamespace(**{**rest, "describe": self._describe, "sweep": self.sweep or port.sweep})


def no_socket_there():
    raise HypervisorUnreachable(
        "lab: cannot connect: End of file while reading data: virt-ssh-helper: cannot connect to "
        "'/run/libvirt-sock-ro': Failed to connect socket to '/run/libvirt-sock-ro': No such file"
    )


@pytest.mark.parametrize(
    "describe",
    [no_socket_there, lambda: EndpointInfo("libvirt", "QEMU 9", "here", can_power=True, remarks=("linger",))],
)
def test_where_ssh_got_in_nobody_is_sent_to_try_it(describe):
    rows, _, _ = findings(Answering(describe))
    assert rows["lab"]["level"] in {"fail", "warn"}
    assert rows["lab"]["try"] == []


def test_a_way_on_which_anybody_may_answer_is_a_failure_although_it_was_taken():
    lab = Lab()
    lab.uri, lab.trusting = "qemu+tcp://lab1/system", True
    told = json.loads(lab.run("check", "-o", "json").stdout)
    rows = [row for row in told["findings"] if row["what"] == "transport"]
    assert [(row["about"], row["level"]) for row in rows] == [("kubernetes", "fail"), ("lab", "fail")]
    assert rows[0]["try"] == [
        "take `unauthenticated: true` out of kubernetes, and do what `fencer check` says then"
    ]
    assert rows[1]["note"].startswith(
        "qemu+tcp:// is neither encrypted nor authenticated: whoever is in between"
    )
    assert rows[1]["try"] == [
        "take `unauthenticated: true` out of lab, and do what `fencer config check` says then"
    ]
    assert (told["ready"], "transport" in told["verdict"]) == (False, True)


def test_a_missing_kubeconfig_is_told_with_the_command_that_makes_it():
    lab = Lab()
    lab.exposed[KUBECONFIG] = (secret_files.Finding("no such file", "ls -l kubeconfig", missing=True),)
    rows, _, _ = findings(lab)
    assert rows["secrets"]["try"] == [
        "fencer setup kubernetes --kubeconfig ADMINS --output /etc/fencer/kubeconfig"
    ]


def test_missing_rights_are_told_with_the_command_that_grants_them():
    lab = Lab()
    lab.simulation.cluster.missing = {"patch nodes"}
    rows, _, _ = findings(lab)
    assert rows["kubernetes"]["try"] == ["fencer setup kubernetes | kubectl apply -f -"]


def test_a_missing_right_to_look_at_volumes_is_a_warning_with_the_command_that_grants_it():
    lab = Lab()
    lab.simulation.cluster.missing = {"get persistentvolumeclaims"}
    rows, _, _ = findings(lab)
    assert (rows["kubernetes"]["level"], rows["volumes"]["level"]) == ("ok", "warn")
    assert rows["volumes"]["note"].startswith("may not get persistentvolumeclaims: a pod that tolerates")
    assert rows["volumes"]["try"] == ["fencer setup kubernetes | kubectl apply -f -"]


@pytest.mark.parametrize(
    ("user", "command"),
    [
        ("system:serviceaccount:fencer:fencer", "fencer setup kubernetes | kubectl apply -f -"),
        ("system:serviceaccount:ops:fencer", "fencer setup kubernetes --namespace ops | kubectl apply -f -"),
        ("kubernetes-admin", "fencer setup kubernetes | kubectl apply -f -"),
        ("system:serviceaccount:ops:other", "fencer setup kubernetes | kubectl apply -f -"),
        ("system:serviceaccount:$(reboot):fencer", "fencer setup kubernetes | kubectl apply -f -"),
        ("(not told)", "fencer setup kubernetes | kubectl apply -f -"),
    ],
)
def test_rights_are_granted_to_the_account_in_use_and_taken_from_none(user, command):
    """The binding has one subject: applied for another namespace, it takes all rights from the account."""
    assert granting(user) == command


def test_an_account_elsewhere_is_told_the_command_for_its_own_namespace():
    lab = Otherwise(identity=in_ops, missing_rights=lambda: ["patch nodes"])
    lab.simulation.cluster.missing = {"create pods/eviction"}
    rows, _, _ = findings(lab)
    command = "fencer setup kubernetes --namespace ops{} | kubectl apply -f -"
    assert rows["kubernetes"]["try"] == [command.format("")]
    assert rows["evictions"]["try"] == [command.format(" --drain")]


@pytest.mark.parametrize(
    ("version", "option"), [("v1.29.15+k3s1", "--no-admission-policy "), ("v1.30.0", ""), ("odd", "")]
)
def test_before_there_were_admission_policies_the_command_prints_none(version, option):
    """Kubectl would fail by a kind that such a server does not know."""
    info = ClusterInfo("uid", "https://10.0.0.1:6443", version, "(not told)")
    lab = Otherwise(identity=lambda: info, missing_rights=lambda: ["patch nodes"])
    lab.simulation.cluster.missing = {"create pods/eviction"}
    lab.own.missing = ["delete volumeattachments"]
    rows, _, _ = findings(lab)
    command = f"fencer setup kubernetes {option}{{}}| kubectl apply -f -"
    told = [rows[name]["try"] for name in ("kubernetes", "evictions", "attachments")]
    assert told == [[command.format(role)] for role in ("", "--drain ", "--attachments ")]


def test_roles_of_their_own_that_are_not_there_are_no_fault_of_an_agent():
    lab = Lab()
    lab.simulation.cluster.missing = {"create pods/eviction"}
    lab.own.missing = ["delete volumeattachments"]
    rows, told, code = findings(lab)
    assert (rows["evictions"]["level"], rows["attachments"]["level"]) == ("note", "note")
    assert rows["evictions"]["note"] == "drain and shutdown cannot evict: may not create pods/eviction"
    assert rows["attachments"]["note"].endswith("are released by Kubernetes, after six minutes")
    assert rows["attachments"]["try"] == ["fencer setup kubernetes --attachments | kubectl apply -f -"]
    assert (told["ready"], code) == (True, 0)


def test_a_hook_that_drains_needs_the_role_for_it():
    lab = Lab()
    lab.hook = HookSettings(PreStop.DRAIN)
    lab.simulation.cluster.missing = {"create pods/eviction"}
    rows, _, _ = findings(lab)
    assert rows["evictions"]["level"] == "warn"
    assert "`hook: {pre_stop: drain}` cannot evict" in rows["evictions"]["note"]


def account(user, version="v1.36.2"):
    return lambda: ClusterInfo("uid", "https://10.0.0.1:6443", version, user)


def test_the_admission_policy_is_tried_on_one_node():
    lab = Lab()
    rows, _, _ = findings(lab)
    assert (rows["admission"]["level"], rows["admission"]["note"]) == (
        "ok",
        "the policy holds for this account",
    )
    assert lab.own.tried == ["k8s-1"]


def test_a_policy_that_is_gone_is_a_warning_with_the_command_that_installs_it_again():
    lab = Otherwise(identity=in_ops)
    lab.own.held = False
    rows, told, code = findings(lab)
    assert rows["admission"]["level"] == "warn"
    assert rows["admission"]["note"].startswith("the admission policy does not hold for this account: ")
    command = "fencer setup kubernetes --namespace ops --admission-policy | kubectl apply -f -"
    assert rows["admission"]["try"] == [command]
    assert (told["ready"], code) == (True, 0)


@pytest.mark.parametrize("user", ["kubernetes-admin", "fencer", "system:serviceaccount:fencer:other"])
def test_an_account_that_the_policy_does_not_name_is_told_how_it_would(user):
    lab = Otherwise(identity=account(user))
    lab.own.held = False
    rows, _, _ = findings(lab)
    own, name = rows["admission"]["try"]
    assert own.startswith("fencer setup kubernetes --kubeconfig ADMINS --output FILE ")
    assert "/etc/fencer/kubeconfig" not in own, "what is replaced may be the administrator's own"
    assert "fencer setup kubernetes --admission-policy" in name
    assert f"'{user}'" in name
    assert "matchConditions" in name


def test_whether_a_policy_holds_that_cannot_be_told_is_no_warning():
    lab = Lab()
    lab.own.held = ClusterProtocol("400: the webhook does not support dry run")
    rows, _, code = findings(lab)
    assert (rows["admission"]["level"], code) == ("note", 0)
    assert rows["admission"]["note"] == (
        "whether the policy holds for this account is not known: 400: the webhook does not support dry run"
    )


def test_before_there_were_admission_policies_none_is_tried_and_that_is_said():
    lab = Otherwise(identity=account("(not told)", "v1.29.15+k3s1"))
    rows, _, _ = findings(lab)
    assert rows["admission"]["level"] == "note"
    assert rows["admission"]["note"].startswith("Kubernetes before 1.30 has none")
    assert (rows["admission"]["try"], lab.own.tried) == ([], [])


def test_without_a_node_no_policy_can_be_tried():
    lab = Otherwise(roster=lambda: Roster((), "2026-11-20T10:41:12Z"))
    rows, _, _ = findings(lab)
    assert "admission" not in rows
    assert lab.own.tried == []


@pytest.mark.parametrize(
    ("left", "level", "note"),
    [
        (timedelta(days=15), "ok", ""),
        (
            timedelta(days=13),
            "warn",
            "it ends in 13 days: then this fencer can neither fence nor lift a fence",
        ),
        (
            timedelta(hours=5),
            "warn",
            "it ends in 5 hours: then this fencer can neither fence nor lift a fence",
        ),
        (
            timedelta(minutes=7, seconds=20),
            "warn",
            "it ends in 7 minutes: then this fencer can neither fence nor lift a fence",
        ),
        (
            timedelta(seconds=3),
            "warn",
            "it ends in less than a minute: then this fencer can neither fence nor lift a fence",
        ),
        (timedelta(hours=-1), "warn", "it ended 1 hour ago: the API server lets nobody in with it"),
    ],
)
def test_a_token_that_ends_soon_is_a_warning_with_the_command_that_makes_another(left, level, note):
    lab = Lab()
    lab.own.ends = lab.wall() + left
    rows, _, _ = findings(lab)
    assert (rows["token"]["level"], rows["token"]["note"]) == (level, note)
    assert rows["token"]["try"] == ([RENEWAL] if level == "warn" else [])


def test_a_client_certificate_is_a_row_of_its_own():
    lab = Lab()
    lab.own.ends = lab.wall() + timedelta(days=60)
    lab.own.others = [Credential("certificate", lab.wall() + timedelta(days=3), RENEWAL)]
    rows, _, _ = findings(lab)
    assert (rows["token"]["level"], rows["certificate"]["level"]) == ("ok", "warn")
    assert rows["certificate"]["note"].startswith("it ends in 3 days: then this fencer can neither fence")
    assert rows["certificate"]["try"] == [RENEWAL]


def test_who_has_no_token_is_told_nothing_of_one():
    rows, _, _ = findings(Lab())
    assert "token" not in rows


def test_a_kubeconfig_that_is_refused_says_itself_what_to_change():
    lab = Lab()
    lab.broken["kubernetes"] = "/etc/fencer/kubeconfig: insecure-skip-tls-verify is set: name its CA there"
    rows, told, code = findings(lab)
    assert (rows["kubernetes"]["note"], rows["kubernetes"]["try"]) == (lab.broken["kubernetes"], [])
    assert (code, "kubernetes" in told["verdict"]) == (1, True)


KUBECTL = "kubectl --kubeconfig /etc/fencer/kubeconfig get nodes"


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ClusterUnreachable("no answer"), [KUBECTL]),
        (ClusterProtocol("HTML"), [KUBECTL]),
        (ClusterDenied("401: the token ended: this makes another"), []),
        (ConfigError("refused: insecure-skip-tls-verify is set"), []),
    ],
)
def test_another_client_is_named_where_it_may_tell_more_than_our_own_words(error, tries):
    """It takes what we refuse, and is refused by whoever refuses us."""

    def identity():
        raise error

    rows, _, code = findings(Otherwise(identity=identity))
    assert (rows["kubernetes"]["note"], rows["kubernetes"]["try"], code) == (str(error), tries, 1)


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ClusterUnreachable("no answer"), ["the same again: it answered a moment ago"]),
        (ClusterDenied("403: this grants it"), []),
        (ClusterProtocol("the key has 3 bytes: this makes another"), []),
    ],
)
def test_only_who_did_not_answer_is_to_be_asked_again(error, tries):
    def roster():
        raise error

    rows, _, code = findings(Otherwise(roster=roster))
    assert (rows["nodes"]["note"], rows["nodes"]["try"], code) == (str(error), tries, 1)


def test_one_endpoint_that_cannot_be_built_does_not_hide_the_others():
    lab = Lab()
    lab.broken["far"] = "far: libvirt's binding is not installed: uv tool install '.[libvirt]'"
    rows, _, code = findings(lab)
    assert code == 1
    assert (rows["far"]["level"], rows["lab"]["level"]) == ("fail", "ok")
    assert "uv tool install" in rows["far"]["note"]
    assert rows["guests"]["level"] == "ok"


def test_guests_that_cannot_be_told_while_an_endpoint_is_silent_are_not_called_missing():
    lab = Lab()
    lab.breaks(What.DENIED)
    rows, _, _ = findings(lab)
    assert rows["guests"]["note"] == "the rest cannot be told before lab is in order"
    assert "bindings" not in rows


def test_a_node_that_is_no_guest_is_named():
    lab = Lab()
    lab.breaks(What.MISSING, "k8s-3")
    rows, _, _ = findings(lab)
    assert rows["guests"]["about"] == "2 of 3 nodes found"
    assert rows["guests"]["note"].startswith("k8s-3: no guest has UUID")


def test_a_binding_whose_guest_is_gone_is_a_failure():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.MISSING, "k8s-3")
    rows, told, code = findings(lab)
    assert rows["guests"]["level"] == "ok", "by the binding on the node"
    assert (rows["bindings"]["level"], code) == ("fail", 1)
    assert len(rows["bindings"]["points"]) == 1
    assert rows["bindings"]["points"][0].startswith("k8s-3: ")
    assert "bindings" in told["verdict"]


def test_a_guest_that_reads_off_while_its_node_is_ready_is_a_failure():
    """The binding is wrong, or the hypervisor is."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.LIE_STOPPED, "k8s-3")
    rows, _, code = findings(lab)
    assert (rows["bindings"]["level"], code) == ("fail", 1)
    assert rows["bindings"]["points"][0].startswith("k8s-3 is Ready, and lab/k8s-3")


def test_copies_are_listed_also_while_they_do_no_harm():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.CLONE, "k8s-2")
    rows, _, _ = findings(lab)
    assert rows["copies"]["level"] == "warn"
    assert rows["copies"]["note"].startswith("k8s-2: lab/k8s-2")


@dataclass
class Board:
    """A witness of a host's power."""

    says: bool | FencerError | None
    host: str = "pve1"

    def is_off(self):
        if isinstance(self.says, FencerError):
            raise self.says
        return self.says


class WitnessedLab(Lab):
    """A lab whose configuration names a power witness for one host."""

    def __init__(self, board):
        super().__init__()
        self.board = board
        self.passes(30, watched=True)

    def load(self, path):
        config = super().load(path)
        (endpoint,) = config.endpoints
        witness = PowerWitness(self.board.host, "fence_ipmilan")
        return replace(config, endpoints=(replace(endpoint, host_power=(witness,)),))

    def witness(self, _written):
        if isinstance(self.board.says, ConfigError):
            raise self.board.says
        return self.board


@pytest.mark.parametrize(
    ("says", "level", "note"),
    [
        (False, "ok", "says on"),
        (True, "fail", "says off"),
        (None, "fail", "neither on nor off"),
        (HypervisorUnreachable("no answer from 10.0.0.9"), "fail", "no answer from 10.0.0.9"),
        (ConfigError("fence_ipmilan: no such program"), "fail", "no such program"),
    ],
)
def test_a_power_witness_is_asked(says, level, note):
    rows, _, code = findings(WitnessedLab(Board(says)))
    assert (rows["host power"]["level"], rows["host power"]["about"]) == (level, "lab/pve1")
    assert rows["host power"]["note"].startswith(note) or note in rows["host power"]["note"]
    assert code == (level == "fail")


def test_nodes_whose_host_has_no_witness_are_named():
    lab = WitnessedLab(Board(says=False, host=Lab().simulation.world.guests["k8s-1"].host))
    rows, _, _ = findings(lab)
    assert rows["host death"]["about"] == "3 of 3 nodes provable"
    rows, _, _ = findings(WitnessedLab(Board(says=False, host="elsewhere")))
    assert rows["host death"]["note"].startswith("k8s-1, k8s-2, k8s-3: if the host itself dies")


def test_guests_that_fencer_would_want_to_stop_and_may_not_are_named():
    rows, _, _ = findings(Lab(power=False))
    assert rows["power"]["level"] == "warn"
    assert "k8s-2" in rows["power"]["note"]


def test_a_pause_of_fencing_is_a_warning():
    lab = Lab()
    lab.simulation.api.paused_why = "moving house"
    rows, told, _ = findings(lab)
    assert rows["pause"]["note"] == "fencing is paused: moving house"
    assert "1 warning" in told["verdict"]


def notes(lab):
    """What is told of notes on Nodes: level, about, and the points."""
    rows, _, code = findings(lab)
    assert code == 0
    found = rows.get("notes")
    return found and (found["level"], found["about"], found["points"])


class Noted:
    """A lab that has watched, and on whose k8s-2 somebody writes."""

    def __init__(self):
        self.lab = Lab()
        self.lab.passes(30, watched=True)
        self.node = self.lab.simulation.api.nodes["k8s-2"]
        self.guest = self.lab.simulation.world.guests["k8s-2"].ref
        self.seal = keys.Seal(KEY, self.node.uid)

    def write(self, annotation, text):
        self.node.annotations[annotation] = text
        self.lab.simulation.api.changed(self.node)

    def doubt(self, **about):
        [witness] = {one.witness for one in self.lab.simulation.hypervisors["lab"].sweep()}
        guest = replace(self.guest, **about)
        return Doubt(Doubted.CONTRADICTED, guest, witness, "fencer@pve1", "2026-11-20T10:41:12Z")


def test_a_forged_mark_is_told_with_what_throws_it_away():
    lab = Lab()
    lab.breaks(What.FORGE_MARK, "k8s-2")
    level, about, [point] = notes(lab)
    assert (level, about) == ("warn", "1 node")
    assert point.startswith("k8s-2: its mark cannot be read (no agent with the present key")
    assert "`kubectl annotate node k8s-2 fencer.dev/mark-`" in point


def test_a_fence_of_an_older_fencer_is_told_with_what_adopts_it():
    noted = Noted()
    mark = FenceMark("i-1", "2026-11-20T10:41:12Z", noted.node.boot_id, noted.guest, "fencer@pve2")
    unsigned = {**json.loads(keys.write_mark(mark, noted.seal)), "schema": keys.UNSIGNED}
    noted.write(keys.MARK, json.dumps(unsigned))
    noted.lab.simulation.cluster.taint_by_hand("k8s-2")
    assert notes(noted.lab) is None, "beside no taint of that moment, it is nothing"
    noted.lab.simulation.api.set_taints(
        noted.lab.simulation.api.nodes["k8s-2"],
        (Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", mark.fenced_at_utc),),
    )
    _, _, [point] = notes(noted.lab)
    assert point.startswith("k8s-2: ")
    assert "`fencer unfence k8s-2 --adopt WHY`" in point


def test_a_witness_that_is_not_believed_is_told():
    """Its node cannot be fenced by what that one says: worth knowing before it dies."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.SAVE_TO_FILE, "k8s-2")
    lab.passes(60, watched=True)
    rows, _, _ = findings(lab)
    [point] = rows["notes"]["points"]
    assert point.startswith('k8s-2: "off" is not believed of lab/k8s-2')
    assert "`kubectl annotate node k8s-2 fencer.dev/doubts-`, if you know better" in point


def test_a_doubt_about_a_host_that_the_guest_has_left_is_in_nobodys_way():
    noted = Noted()
    noted.write(keys.DOUBTS, keys.write_doubts((noted.doubt(host="elsewhere"),), noted.seal))
    assert notes(noted.lab) is None


def test_a_doubt_that_the_next_pass_lifts_is_in_nobodys_way():
    noted = Noted()
    noted.write(keys.DOUBTS, keys.write_doubts((noted.doubt(),), noted.seal))
    assert notes(noted.lab) is None


def test_doubts_that_cannot_be_read_are_told_beside_other_notes_of_the_node():
    noted = Noted()
    forged = keys.Seal(b"a key of my own", noted.node.uid)
    noted.write(keys.DOUBTS, keys.write_doubts((noted.doubt(),), forged))
    noted.write(keys.MARK, "nonsense")
    _, about, [mark, doubts] = notes(noted.lab)
    assert about == "1 node"
    assert "`kubectl annotate node k8s-2 fencer.dev/mark-`" in mark
    assert "`kubectl annotate node k8s-2 fencer.dev/doubts-`" in doubts


class LateLab(Lab):
    """A machine whose clock is wrong."""

    def wall(self):
        return super().wall() + timedelta(seconds=75)


def test_a_wrong_clock_is_a_warning():
    rows, _, _ = findings(LateLab())
    assert rows["clock"]["about"] == "75 s off"


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("v1.36.2", Level.OK),
        ("v1.26.0", Level.OK),
        ("v1.25.16+k3s1", Level.WARN),
        ("v1.24.0", Level.WARN),
        ("v1.23.9", Level.FAIL),
        ("nonsense", Level.WARN),
    ],
)
def test_the_version_decides_what_the_taint_does(version, level):
    info = ClusterInfo("uid", "https://10.0.0.1:6443", version, "fencer")
    assert cluster_finding(info, ()).level is level


def test_a_configuration_that_is_wrong_is_code_2_and_its_errors_are_told():
    result = Lab().run("check", "-c", "/nowhere.yaml")
    assert result.exit_code == 2
    assert "/nowhere.yaml: cannot be read" in result.stderr


def test_observing_is_told_how_to_be_armed():
    _, told, _ = findings(Lab(Policy(mode=Mode.OBSERVE)))
    assert told["verdict"].endswith("Ready to be armed: `mode: armed` in /etc/fencer/config.yaml.")


def test_what_no_adapter_reads_is_a_hint_and_no_guess():
    """Proxmox is asked, and VirtualBox never stops a guest by itself."""
    [hint] = unread_finding({"home": "proxmox", "lab": "libvirt", "attic": "libvirt", "desk": "virtualbox"})
    assert (hint.level, hint.about) == (Level.NOTE, "time not read")
    assert hint.note.startswith("lab, attic: `virsh shutdown`")


class Reticent(Lab):
    """A lab whose hypervisor keeps settings, and refuses to tell those of one guest."""

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)

        def stop_settings(guest):
            if guest.name == "k8s-2":
                raise HypervisorDenied("lacks VM.Audit")
            return StopSettings(180.0, "as it comes")

        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return SimpleNamespace(**{**rest, "stop_settings": stop_settings})


def test_a_guest_whose_settings_cannot_be_read_hides_no_other():
    told = json.loads(Reticent().run("check", "-o", "json").stdout)["findings"]
    unread, others = [row for row in told if row["what"] == "shutdown"]
    assert (unread["level"], unread["points"]) == ("note", ["k8s-2: lacks VM.Audit"])
    assert (others["level"], others["about"]) == ("ok", "2 of 2 guests have 180 s")


def test_the_time_of_a_drain_inside_is_its_units():
    unit = Path(__file__).parents[2] / "systemd" / "fencer-guest-drain.service"
    assert f"\nTimeoutStopSec={DRAIN_INSIDE_S}\n" in unit.read_text()


def test_a_guest_of_which_nothing_can_be_told_was_not_read_live():
    """Its host is dead: that its binding was proven once is no reading."""
    silent = observation()
    told = replace(evidence(PowerState.UNKNOWN), raw="lab1 is offline")
    [finding] = binding_findings([silent], lambda _guest: told)
    assert (finding.level, finding.points) == (Level.WARN, (f"{silent.node.name}: lab1 is offline",))


class Foreign(Lab):
    """A lab whose hypervisor is somebody else's adapter.

    Args:
        methods: What it does otherwise.
    """

    def __init__(self, **methods) -> None:
        super().__init__()
        self.one_host = False
        self._methods = methods

    def load(self, path):
        endpoint = AdapterEndpoint("lab", "cells", one_host=self.one_host)
        return replace(super().load(path), endpoints=(endpoint,))

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        told = SimpleNamespace(**{**rest, **self._methods})
        return Guarded(endpoint.name, told, clock.now_s, one_host=endpoint.one_host)


def cannot_list():
    raise HypervisorUnreachable("the list of guests timed out")


@pytest.mark.parametrize(
    ("sweep", "why"),
    [
        (cannot_list, "lab: the list of guests timed out"),
        (lambda: None, "lab: its adapter gave an answer that cannot be understood (sweep): "),
    ],
    ids=["raises", "returns None"],
)
def test_an_endpoint_that_describes_itself_and_tells_of_no_guest_fails_with_its_error(sweep, why):
    lab = Foreign(sweep=sweep)
    rows, told, code = findings(lab)
    assert (rows["lab"]["level"], code) == ("fail", 1)
    assert rows["lab"]["points"][0].startswith(f"Its guests were not told: {why}")
    assert rows["guests"]["note"] == "the rest cannot be told before lab is in order"
    assert "nodes: {NODE" not in json.dumps(rows), "no guest has to be named"
    assert told["verdict"].endswith("Not ready to be armed: lab.")
    explained = lab.run("explain", "k8s-2").output
    assert why in " ".join(explained.split())
    assert f"fencer: {why}" in lab.run("fence", "k8s-2", "--yes").stderr
    assert why in json.loads(lab.run("explain", "k8s-2", "-o", "json").stdout)["unanswered"]["lab"]


def saying(lab, **changes):
    """Have its adapter say something else of its guests."""
    port = lab.simulation.hypervisor

    def otherwise(reading):
        guest = replace(reading.guest, **{key: changes[key] for key in ("host",) if key in changes})
        return replace(reading, guest=guest, **{key: changes[key] for key in changes if key != "host"})

    lab._methods = {
        "sweep": lambda: [otherwise(reading) for reading in port.sweep()],
        "read": lambda guest: otherwise(port.read(guest)),
    }
    return lab


@pytest.mark.parametrize(
    ("changes", "point"),
    [
        ({"host": None}, "lab names no host for its guests, and `one_host` is not set"),
        ({"incarnation": None}, "lab names no run (incarnation) of its guests"),
        ({"witness": ""}, "lab does not say whose word it tells of its guests (witness)"),
    ],
)
def test_an_adapter_whose_off_could_never_be_believed_is_told_while_its_guests_run(changes, point):
    lab = saying(Foreign(), **changes)
    rows, _, _ = findings(lab)
    assert (rows["proof"]["about"], rows["proof"]["level"]) == ("lab", "warn")
    assert rows["proof"]["note"] == "none of its guests will be believed off"
    assert len(rows["proof"]["points"]) == 1
    assert rows["proof"]["points"][0].startswith(point)
    assert rows["proof"]["try"]
    lab.breaks(What.POWER_OFF, "k8s-2")
    said = json.loads(lab.run("explain", "k8s-2", "-o", "json").stdout)["guest_says"]
    assert "cannot be understood: stopped, and no" in said, "and that is so"


def test_of_one_host_no_host_has_to_be_named_and_whoever_says_all_is_no_warning():
    assert "proof" not in findings(Foreign())[0]
    lab = saying(Foreign(), host=None)
    lab.one_host = True
    assert "proof" not in findings(lab)[0]


@pytest.mark.parametrize(
    ("uri", "tries"),
    [
        ("qemu:///system", ["systemctl restart libvirtd   (or virtqemud; on this host, if it hangs"]),
        ("qemu+ssh://lab1/system", ["ssh lab1 true", "systemctl restart libvirtd   (or virtqemud; there"]),
        ("qemu:///session", []),
    ],
)
@pytest.mark.parametrize("what", ["describe", "sweep"])
def test_a_libvirtd_that_hangs_is_told_to_be_restarted(uri, tries, what):
    def hangs():
        raise HypervisorUnreachable("lab: no answer within 10 s")

    lab = Answering(hangs) if what == "describe" else Answering(Lab().simulation.hypervisor.describe)
    lab.uri = uri
    if what == "sweep":
        lab.sweep = hangs
    told = findings(lab)[0]["lab"]["try"]
    assert [one.startswith(begin) for one, begin in zip(told, tries, strict=True)] == [True] * len(tries)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (HypervisorUnreachable("lab: no answer within 10 s"), "could not be read live"),
        (HypervisorDenied("lab: access denied"), "could not be read live"),
        (GuestNotFound("lab: knows no such guest"), "read live, they do not hold"),
    ],
)
def test_a_guest_that_was_not_read_is_no_binding_that_does_not_hold(error, note):
    def read(_guest):
        raise error

    [finding] = binding_findings([observation()], read)
    assert (finding.level, finding.note) == (Level.FAIL, note)
    assert finding.points == (f"{observation().node.name}: {error}",)

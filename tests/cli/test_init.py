"""``fencer init`` beside a real API server: what it finds, asks, makes, and leaves alone."""

import os
import re
import shlex
import stat
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.asked import Person
from fencer.cli.init_kubernetes import administrator, own_kubeconfig
from fencer.cli.init_wish import Asked
from fencer.cli.main import cli
from fencer.cli.wire import Wiring
from fencer.config.load import load
from fencer.core.identity import swapped
from fencer.errors import ConfigError
from tests.controlplane.binaries import CONTROLLER_MANAGER, SCHEDULER
from tests.docs.quick_starts import VAGRANT, block
from tests.setup import test_vagrant_index as index
from tests.setup.test_pve import ALONE, CLUSTER, Tools
from tests.support.controlplane import ControlPlane, running_control_plane
from tests.support.guests import libvirt_binding
from tests.support.vbox import FakeVBox

TEST_DRIVER = "test:///default"
"""libvirt's own driver for tests: one guest, whose UUID is this."""
GUEST = "6695eb01-f6a4-8304-79aa-97f2502e193f"
NODES = "/api/v1/nodes"
OTHER_CA = b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode()


class Typed(Wiring):
    """Somebody sits there, and can be asked."""

    def interactive(self):
        return True


class Setting:
    """A machine on which somebody types `fencer init`."""

    def __init__(self, api: ControlPlane, folder: Path) -> None:
        self.api, self.folder = api, folder
        self.path = folder / "etc" / "config.yaml"
        self.admins = str(api.kubeconfig())
        self.path.parent.mkdir()

    def init(self, *words, typed=""):
        return self.run("init", "-c", str(self.path), *words, typed=typed)

    def run(self, *words, typed="", **environment):
        home = {"KUBECONFIG": "", "HOME": str(self.folder), "SUDO_USER": "", **environment}
        wiring = Typed() if typed else Wiring()
        result = CliRunner().invoke(cli, words, obj=wiring, input=typed, env=home)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def named(self, *words, **others):
        """Name all that would have to be asked for, and agree."""
        return self.init("--kubeconfig", self.admins, "--yes", *words, **others)


@pytest.fixture(scope="module")
def bare_api(tmp_path_factory):
    """One of its own, with nothing of fencer's in it: what init makes stays, and binds everybody."""
    with running_control_plane(tmp_path_factory.mktemp("init-api")) as running:
        running.stop_component(CONTROLLER_MANAGER)
        running.stop_component(SCHEDULER)
        yield running


def put_node(bare_api, name, uuid=GUEST):
    """Make a node that says it is the guest of libvirt's test driver, or another one."""
    made = bare_api.request("POST", NODES, {"metadata": {"name": name}})
    assert made.status == 201, made
    rest = "machineID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion bootID"
    info = dict.fromkeys([*rest.split(), "operatingSystem", "architecture"], "")
    status = {"nodeInfo": info | {"systemUUID": uuid}, "conditions": [{"type": "Ready", "status": "True"}]}
    bare_api.request("PUT", f"{NODES}/{name}/status", {**made.body, "status": status})


@pytest.fixture
def node(bare_api):
    """A node with the name of its guest."""
    libvirt_binding()
    put_node(bare_api, "test")
    yield "test"
    bare_api.request("DELETE", f"{NODES}/test")


@pytest.fixture
def claimant(bare_api):
    """A node that says it is a guest of another name."""
    libvirt_binding()
    put_node(bare_api, "k8s-init")
    yield "k8s-init"
    bare_api.request("DELETE", f"{NODES}/k8s-init")


@pytest.fixture
def setting(bare_api, tmp_path):
    return Setting(bare_api, tmp_path)


def test_all_is_made_and_nothing_of_the_administrator_is_kept(setting, node):
    done = setting.named("--uri", TEST_DRIVER, "--approve", f"{node}={node}")
    assert "account, rights and admission policy: " in done.stdout, done.output
    config = load(setting.path)
    [endpoint] = config.endpoints
    assert (endpoint.uri, endpoint.power.uuids) == (TEST_DRIVER, {GUEST})
    assert f'- "{GUEST}" # {node}: test' in setting.path.read_text()
    own = setting.path.with_name("kubeconfig")
    assert config.kubernetes.kubeconfig == own
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert "client-key" not in own.read_text()
    assert "has the rights to fence" in done.stdout
    assert "sed -i 's/^mode: observe/mode: armed/'" in done.stdout


def test_a_nodes_own_word_gives_no_power_over_a_guest_of_another_name(setting, claimant):
    """Its UUID is what its kubelet says: it may be that of any machine of the hypervisor."""
    done = setting.named("--uri", TEST_DRIVER)
    [endpoint] = load(setting.path).endpoints
    assert endpoint.power.nobody
    assert f"{claimant}: says that it is the VM test ({GUEST}), and fencer has no power" in done.stdout


def test_a_node_that_is_named_like_its_vm_has_no_power_over_it_either(setting, node):
    """A machine that joins chooses its name, too (C3)."""
    done = setting.named("--uri", TEST_DRIVER)
    [endpoint] = load(setting.path).endpoints
    assert endpoint.power.nobody
    assert f"{node}: says that it is the VM test ({GUEST}), and fencer has no power over it" in done.stdout


@pytest.mark.parametrize("answer", ["y", ""])
def test_a_person_is_asked_over_which_vms_fencer_has_power(setting, node, answer):
    typed = f"y\n{answer}\n"
    done = setting.init("--uri", TEST_DRIVER, "--kubeconfig", setting.admins, "--no-hook", typed=typed)
    assert re.search(rf"(?m)^{node} .*{GUEST}$", done.stdout)
    assert "Are these VMs the nodes beside them, and may fencer stop and start them?" in done.stdout
    [endpoint] = load(setting.path).endpoints
    assert endpoint.power.uuids == ({GUEST} if answer else set())


def test_a_vm_that_is_not_the_nodes_is_not_approved_whatever_the_node_says(setting, claimant):
    """The one who types knows which VM the node is; the node says that it is another one."""
    done = setting.named("--uri", TEST_DRIVER, "--approve", f"{claimant}={claimant}")
    [endpoint] = load(setting.path).endpoints
    assert endpoint.power.nobody
    assert f"--approve {claimant}={claimant} gave no power" in done.stdout


@pytest.mark.parametrize(
    "words", [("--approve", "k8s-1"), ("--approve", "=1"), ("--no-power", "--approve", "a=b")]
)
def test_an_approval_that_names_too_little_or_contradicts_is_refused(setting, words):
    assert setting.named("--uri", TEST_DRIVER, *words).exit_code == 2


def test_a_node_that_is_not_there_is_not_approved_in_silence(setting, node):
    done = setting.named("--uri", TEST_DRIVER, "--approve", "k8s-9=101")
    assert "--approve k8s-9=101 gave no power" in done.stdout


def test_who_says_that_it_is_that_guest_is_not_told_so_again(setting, claimant):
    done = setting.init("--uri", TEST_DRIVER, "--kubeconfig", setting.admins, "--no-hook", typed="y\ny\n")
    assert (
        f"{claimant} reports that it is the VM test (UUID {GUEST}). May fencer stop and start it?"
        in done.stdout
    )
    [endpoint] = load(setting.path).endpoints
    assert endpoint.power.uuids == {GUEST}
    assert f"left 1: {claimant}" not in done.stdout


def test_a_lab_of_vagrants_is_set_up_by_the_readmes_line_and_enter(setting, bare_api, monkeypatch):
    """As whoever typed `vagrant up`: machines, names and kubeconfig are found, and nothing is left to say."""
    line = next(one for one in block(VAGRANT).splitlines() if " init " in one)
    words = line.removeprefix("./dev fencer ").removesuffix(" &&").split()
    [_, config] = re.fullmatch(r"export (FENCER_CONFIG)=~/(\S+)", block(VAGRANT).splitlines()[0]).groups()
    project, vbox = setting.folder / "kubespray", FakeVBox(setting.folder)
    guest = vbox.add("kubespray_k8s-1_1700000000000_123")
    record = project / ".vagrant" / "machines" / "k8s-1" / "virtualbox" / "id"
    record.parent.mkdir(parents=True)
    record.write_text(guest.id)
    index.write(setting.folder / ".vagrant.d", index.entry(project))
    admins = project / "inventory" / "sample" / "artifacts" / "admin.conf"
    admins.parent.mkdir(parents=True)
    admins.write_text(embedded(Path(setting.admins)))
    tools = setting.folder / "bin"
    tools.mkdir()
    (tools / "VBoxManage").write_text(f'#!/bin/sh\nexec {shlex.join(vbox.command)} "$@"\n')
    (tools / "VBoxManage").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr("fencer.setup.surroundings.PLACES", ())  # nor this machine's own
    monkeypatch.setattr("fencer.setup.surroundings._VBOXMANAGE", "nowhere")
    put_node(bare_api, "k8s-1", swapped(guest.uuid))
    try:
        path = setting.folder / config
        done = setting.run(*words, typed="\n\ny\n", FENCER_CONFIG=str(path))
    finally:
        bare_api.request("DELETE", f"{NODES}/k8s-1")
    assert f"or its file [{admins}]: " in done.stdout, done.output
    [endpoint] = load(path).endpoints
    assert endpoint.power.uuids == {guest.uuid}
    assert re.search(r"(?m)^power +1 of 1 guest may be stopped", done.stdout)
    assert re.findall(r"(?m)^left .*", done.stdout) == [f"left 1: fencer watch -c {path}   runs the agent"]


def planted(setting, file):
    """Put a kubeconfig that runs a program where others may write; return what that program would leave."""
    trace = setting.folder / "ran"
    content = yaml.safe_load(embedded(Path(setting.admins)))
    content["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "touch",
            "args": [str(trace)],
            "interactiveMode": "Never",
        }
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content))
    return trace


def test_a_file_that_is_called_like_the_answer_is_not_taken_for_it(setting, monkeypatch):
    """Whoever may write to the folder in which root types would be root."""
    monkeypatch.setattr("fencer.setup.surroundings.PLACES", ())
    monkeypatch.chdir(setting.folder)
    trace = planted(setting, setting.folder / "root@192.0.2.9")
    tools = setting.folder / "bin"
    tools.mkdir()
    (tools / "ssh").write_text("#!/bin/sh\necho no route to host >&2\nexit 255\n")
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    refused = setting.init("--uri", TEST_DRIVER, typed="root@192.0.2.9\n")
    assert refused.exit_code == 3
    assert "no route to host" in refused.stderr
    assert not trace.exists()


def test_of_a_kubeconfig_that_nobody_named_no_program_is_run(setting, monkeypatch):
    monkeypatch.setattr("fencer.setup.surroundings.PLACES", ())
    project = setting.folder / "kubespray"
    index.write(setting.folder / ".vagrant.d", index.entry(project))
    trace = planted(setting, project / "inventory" / "sample" / "artifacts" / "admin.conf")
    refused = setting.init("--uri", TEST_DRIVER, typed="\n")
    assert refused.exit_code == 2
    assert "admin.conf: its kubeconfig has 'exec'" in refused.stderr
    assert not trace.exists()


def test_the_home_of_nobody_is_one_sentence(setting, monkeypatch):
    monkeypatch.setattr("fencer.setup.surroundings.PLACES", ())
    refused = setting.init("--uri", TEST_DRIVER, typed="~nosuch/admin.conf\n")
    assert refused.exit_code == 2
    assert "~nosuch/admin.conf" in refused.stderr


def test_what_cannot_be_shown_as_it_is_is_not_offered(setting, monkeypatch):
    """What is written for a sign that does nothing visible may be another file's name."""
    monkeypatch.setattr("fencer.setup.surroundings.PLACES", ())
    project = setting.folder / "kubespray"
    index.write(setting.folder / ".vagrant.d", index.entry(project))
    trace = planted(setting, project / "inventory" / "\x1bx" / "artifacts" / "admin.conf")
    planted(setting, project / "inventory" / "\\x1bx" / "artifacts" / "admin.conf")
    asked = setting.init("--uri", TEST_DRIVER, typed="\n")
    assert "or its file: " in asked.stdout
    assert not trace.exists()


def test_a_client_leaves_nothing_of_the_administrators_key_behind(setting, node, monkeypatch):
    there = setting.folder / "embedded"
    there.write_text(embedded(Path(setting.admins)))
    places = setting.folder / "places"
    places.mkdir()
    monkeypatch.setattr("fencer.cluster.temporary._IN_MEMORY", (places,))
    setting.init("--kubeconfig", str(there), "--uri", TEST_DRIVER, "--yes")
    assert load(setting.path)
    assert not list(places.rglob("*"))


def test_an_administrators_own_kubeconfig_is_never_replaced_or_given_away(setting, node):
    own = setting.folder / "own.yaml"
    own.write_text(Path(setting.admins).read_text())
    setting.path.write_text(
        f"mode: observe\nkubernetes: {{kubeconfig: {own}}}\n"
        f"hypervisors: [{{name: lab, type: libvirt, uri: '{TEST_DRIVER}'}}]\n"
    )
    refused = setting.named()
    assert (refused.exit_code, "is of admin, and not of an account of fencer's own" in refused.stderr) == (
        2,
        True,
    )
    same = setting.init("--kubeconfig", str(own), "--yes")
    assert (same.exit_code, "is the administrator's kubeconfig itself" in same.stderr) == (2, True)
    assert own.read_text() == Path(setting.admins).read_text()


def test_a_kubeconfig_that_leads_nowhere_is_replaced_only_if_it_is_of_the_same_ca(setting, node):
    setting.named("--uri", TEST_DRIVER)
    own = setting.path.with_name("kubeconfig")
    elsewhere = own.read_text().replace(setting.api.url, "https://127.0.0.1:9")
    own.write_text(elsewhere)
    assert f"{own}: is replaced: " in setting.named().stderr
    foreign = elsewhere.replace("certificate-authority-data: ", "certificate-authority-data: &x ")
    own.write_text(re.sub(r'(certificate-authority-data: )&x ".*"', rf'\1"{OTHER_CA}"', foreign))
    refused = setting.named()
    assert refused.exit_code == 2, refused.output
    assert "whether it is for the cluster of" in refused.stderr


def test_a_server_that_does_not_answer_is_said_with_the_reason_before_anything_is_done(setting, node):
    refused = setting.named("--uri", TEST_DRIVER, "--server", "https://127.0.0.1:9")
    assert refused.exit_code == 3
    assert "https://127.0.0.1:9 does not answer" in refused.stderr
    assert not list(setting.path.parent.iterdir())


def test_a_second_run_changes_nothing_and_a_third_mends_what_is_lost(setting, node):
    setting.named("--uri", TEST_DRIVER)
    before = {file: file.read_bytes() for file in setting.path.parent.iterdir()}
    again = setting.named()
    assert again.stdout.count("none of them new or changed") == 2, again.output
    assert {file: file.read_bytes() for file in setting.path.parent.iterdir()} == before
    own = setting.path.with_name("kubeconfig")
    own.write_text(own.read_text().replace("token:", "lost:"))
    assert f"{own}: is replaced: " in setting.named().stderr
    assert "lost:" not in own.read_text()


def test_nothing_is_made_where_somebody_says_no_or_nobody_can_say_yes(setting, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    refused = setting.init("--kubeconfig", setting.admins, "--uri", TEST_DRIVER)
    assert refused.exit_code == 2
    assert "Nobody can be asked here: --yes agrees" in refused.stderr
    assert not list(setting.path.parent.iterdir())


def test_a_configuration_that_is_there_says_which_hypervisor_is_meant(setting):
    setting.path.write_text(
        "mode: armed\nkubernetes: {kubeconfig: /nowhere}\nhypervisors: [{name: lab, type: libvirt, uri: 'test:///default'}]\n"
    )
    before = setting.path.read_text()
    refused = setting.named("--pve", "root@pve1")
    assert refused.exit_code == 2
    assert "names no hypervisor one of type proxmox, but lab" in refused.stderr
    assert setting.path.read_text() == before


def test_a_wrong_configuration_is_named_before_anything_is_done(setting):
    setting.path.write_text("mode: perhaps\n")
    refused = setting.named("--uri", TEST_DRIVER)
    assert (refused.exit_code, "mode" in refused.stderr) == (2, True)
    assert list(setting.path.parent.iterdir()) == [setting.path]


def test_a_kubeconfig_of_another_cluster_is_left_alone(setting, node):
    setting.named("--uri", TEST_DRIVER)
    own = setting.path.with_name("kubeconfig")
    before = own.read_text()
    person = Person(there=False, agrees=True)
    admin = administrator(Wiring(), person, Asked(Path(setting.admins)), setting.folder)
    elsewhere = replace(admin, info=replace(admin.info, uid="another one"))
    with pytest.raises(ConfigError, match="leads to another cluster than"):
        own_kubeconfig(Wiring(), elsewhere, own, setting.api.url)
    assert own.read_text() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--hypervisor", "proxmox", "--uri", "qemu:///system"), "--uri is for libvirt, not for proxmox"),
        (("--uri", "qemu:///system", "--pve", "root@pve1"), "one hypervisor is set up at a time"),
        (("--pve=-oProxyCommand=sh",), "is no USER@HOST"),
        (("--uri", TEST_DRIVER, "--name", "La B"), "lower-case letters"),
        (("--uri", TEST_DRIVER, "--server", "http://10.0.0.1:6443"), "must begin with https://"),
        (("--uri", TEST_DRIVER, "--from", "root@cp"), "--kubeconfig and --from exclude each other"),
        (("--vboxmanage", "ssh 'box"), "--vboxmanage: "),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_done(setting, words, says):
    refused = setting.named(*words)
    assert refused.exit_code == 2
    assert says in refused.stderr
    assert not list(setting.path.parent.iterdir())


def embedded(kubeconfig):
    """A kubeconfig with its secrets in it, as k3s, RKE2, kubeadm and k0s write it."""
    content = yaml.safe_load(kubeconfig.read_text())
    for part in (content["clusters"][0]["cluster"], content["users"][0]["user"]):
        for key in ("certificate-authority", "client-certificate", "client-key"):
            if key in part:
                part[f"{key}-data"] = b64encode(Path(part.pop(key)).read_bytes()).decode()
    return yaml.safe_dump(content)


def test_a_nodes_kubeconfig_comes_over_ssh_and_leads_to_the_node(setting, node, monkeypatch):
    """k3s writes 127.0.0.1. That becomes the name by which the node was asked for; here, another loopback."""
    there = setting.folder / "k3s.yaml"
    there.write_text(embedded(Path(setting.admins)))
    tools = setting.folder / "bin"
    tools.mkdir()
    (tools / "ssh").write_text(f'#!/bin/sh\necho "$@" > {setting.folder}/typed\nexec cat {there}\n')
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    done = setting.init("--from", "root@localhost", "--uri", TEST_DRIVER, "--yes")
    assert "root@localhost" in (setting.folder / "typed").read_text()
    assert "https://localhost:" in done.stdout, done.output
    assert load(setting.path).kubernetes.kubeconfig == setting.path.with_name("kubeconfig")


def test_a_node_without_a_kubeconfig_is_told_with_where_was_looked(setting, monkeypatch):
    tools = setting.folder / "bin"
    tools.mkdir()
    (tools / "ssh").write_text("#!/bin/sh\nexit 3\n")  # as the shell that looks there ends
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    refused = setting.init("--from", "root@cp", "--uri", TEST_DRIVER, "--yes")
    assert refused.exit_code == 2
    assert "root@cp: no kubeconfig there that this user may read" in refused.stderr
    assert "/etc/rancher/k3s/k3s.yaml" in refused.stderr


def test_a_machine_with_neither_is_told_both_ways(setting, monkeypatch):
    monkeypatch.setattr("fencer.setup.surroundings.PLACES", ())
    refused = setting.init("--uri", TEST_DRIVER, "--yes")
    assert refused.exit_code == 2
    assert "Say it with --from USER@HOST (a control-plane node) or --kubeconfig FILE" in refused.stderr


@pytest.fixture
def pve(setting, monkeypatch):
    """A host of a Proxmox cluster whose API is silent: 10.0.0.11 and its neighbours are nobody."""
    (setting.folder / "host").mkdir()
    tools = Tools(setting.folder / "host", monkeypatch, CLUSTER)
    ca = setting.api.ca_file
    tools.put("cat", f'[ "$1" = /etc/pve/pve-root-ca.pem ] && exec /bin/cat {ca}; exec /bin/cat "$@"')
    tools.says([{**row, "ip": "127.0.0.1"} for row in CLUSTER])
    return tools


def test_a_proxmox_clusters_account_files_and_keys_are_made(setting, pve, node):
    done = setting.named("--pve", "root@pve1", "--pool", "k8s", "--no-hook")
    assert "Proxmox VE 9, cluster home: pve1, pve3, pve2" in done.stdout, done.output
    [endpoint] = load(setting.path).endpoints
    assert (endpoint.name, endpoint.cluster, endpoint.power.groups) == ("home", "home", {"pool:k8s"})
    assert endpoint.ca_file.read_text() == setting.api.ca_file.read_text()
    assert stat.S_IMODE(endpoint.token_file.stat().st_mode) == 0o600
    assert "VM.PowerMgmt" in pve.rights("fencer@pve!agent", "/pool/k8s")
    assert "VM.PowerMgmt" not in pve.rights("fencer@pve!agent", "/vms")
    assert "its guests are not known yet" in done.stdout


def test_a_second_run_gives_the_token_what_the_configuration_says(setting, pve, node):
    setting.named("--pve", "root@pve1", "--no-power", "--no-hook")
    secret = setting.path.with_name("proxmox-token").read_text()
    setting.named("--pve", "root@pve1", "--no-hook")
    assert "VM.PowerMgmt" not in pve.rights("fencer@pve!agent", "/vms")
    assert setting.path.with_name("proxmox-token").read_text() == secret


def test_a_host_with_a_certificate_of_its_own_is_left_to_the_person(setting, pve, node):
    pve.says([{**ALONE[0], "ip": "127.0.0.1"}])
    pve.put("ls", "echo /etc/pve/nodes/pve/pveproxy-ssl.pem")
    done = setting.named("--pve", "root@pve", "--no-hook")
    assert "pve: shows a certificate that was put there (pveproxy-ssl.pem)" in done.stdout, done.output


@pytest.mark.parametrize("words", [("--no-power",), ("--uri", "test+unix:///default")])
def test_what_says_other_than_the_configuration_is_refused_and_not_passed_over(setting, node, words):
    setting.named("--uri", TEST_DRIVER, "--approve", f"{node}={node}")
    refused = setting.named(*words)
    assert refused.exit_code == 2
    assert f"{words[0]}: {setting.path} is there and says otherwise" in refused.stderr


def test_a_proxmox_secret_that_is_lost_is_replaced_only_where_that_is_asked_for(setting, pve, node):
    words = ("--pve", "root@pve1", "--no-power", "--no-hook")
    made = setting.named(*words)
    secret = setting.path.with_name("proxmox-token")
    assert secret.is_file(), made.output
    lost = secret.read_text()
    secret.unlink()
    refused = setting.named("--pve", "root@pve1", "--no-hook")
    assert refused.exit_code == 2, refused.output
    assert f"{secret}: is not there" in refused.stderr
    assert "run the same with --new-token" in refused.stderr
    setting.named("--pve", "root@pve1", "--no-hook", "--new-token")
    assert secret.read_text().strip()
    assert secret.read_text() != lost


def test_a_proxmox_host_of_another_cluster_gets_no_account_for_a_configuration_that_is_there(
    setting, pve, node
):
    setting.named("--pve", "root@pve1", "--no-power", "--no-hook")
    secret = setting.path.with_name("proxmox-token").read_text()
    pve.says([{**CLUSTER[0], "name": "other"}, *CLUSTER[1:]])
    refused = setting.named("--pve", "root@pve1", "--no-hook")
    assert refused.exit_code == 2, refused.output
    assert "its home is the cluster home, and this is the cluster other" in refused.stderr
    assert setting.path.with_name("proxmox-token").read_text() == secret


def test_two_configurations_in_one_folder_share_no_file(setting, node):
    setting.named("--uri", TEST_DRIVER)
    first = setting.path.with_name("kubeconfig").read_text()
    setting.path = setting.path.with_name("home.yaml")
    setting.named("--uri", TEST_DRIVER)
    assert load(setting.path).kubernetes.kubeconfig == setting.path.with_name("home.kubeconfig")
    assert setting.path.with_name("kubeconfig").read_text() == first


def test_where_the_guests_are_not_known_no_configuration_is_written(setting, pve, node):
    refused = setting.named("--pve", "root@pve1", "--no-hook")
    assert refused.exit_code == 3, refused.output
    assert "no configuration is written" in refused.stderr
    assert not setting.path.exists()

"""`pvesh` and `ssh` of a Proxmox host, as stand-ins that share one cluster's state.

Shell, `sha256sum` and files are real: a path that hosts do not share is another folder for each.

Source of the words: recordings of pvesh (13-ok-pvesh); OpenSSH 9.2 against two real sshd; pve-manager's
PVE/CLI/pvesh.pm, which goes to other hosts by ssh itself; pve-common's run_command, which ends with "proxy
handler failed" and the last line that it read; pve-cluster's PVE/SSHInfo.pm.
"""

import ast
import os
import sys
from pathlib import Path

HOSTS = {"pve1": "10.0.0.11", "pve2": "10.0.0.12", "pve3": "10.0.0.13"}

# As little as a start can cost: nothing is imported that not every Python has loaded already.
TOOL = f"#!{sys.executable} -IS\n"
TOOL += '''
import os, sys


def read(file):
    with open(file) as opened:
        return opened.read()


def keep():
    with open(os.environ["CLUSTER"], "w") as kept:
        kept.write(ascii(state))


state = eval(read(os.environ["CLUSTER"]))
tool, words = os.path.basename(sys.argv[0]), sys.argv[1:]
state["calls"].append([tool, *words])
keep()
HERE = "pve1"
CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Host key for ALIAS has changed and you have requested strict checking.
Host key verification failed."""


def fail(code, text):
    print(text, file=sys.stderr)
    sys.exit(code)


def refusal(host, ip, alias, file):
    """Why ssh does not get there; None: it does."""
    if host in state["silent"]:
        import signal

        signal.pause()
    if host in state["dead"] or not host:
        return f"ssh: connect to host {ip} port 22: No route to host"
    if file is None:
        known = {name: state["keys"][name] for name in state["merged"]}
    else:
        known = dict(line.split(" ", 1) for line in read(file).splitlines())
    if alias not in known:
        return "Host key verification failed."
    if known[alias] != state["keys"][host]:
        return CHANGED.replace("ALIAS", alias)
    if host in state["denied"]:
        return f"root@{ip}: Permission denied (publickey,password)."
    return None


def on(host):
    """Where a host has the storage's folder."""
    return state["folder"] + ("" if host == HERE or host in state["sharing"] else f"@{host}")


def ssh():
    options = {}
    while words[0].startswith("-"):
        flag, value = words.pop(0), words.pop(0)
        if flag == "-o":
            name, _, value = value.partition("=")
            options[name] = value
    assert options.get("BatchMode") == "yes", options
    user, _, ip = words.pop(0).partition("@")
    assert user == "root", user
    host = {address: name for name, address in state["hosts"].items()}.get(ip)
    file = options.get("UserKnownHostsFile")
    assert (file is None) == (options.get("GlobalKnownHostsFile") is None), options
    why = refusal(host, ip, options.get("HostKeyAlias", ip), file)
    if why:
        fail(255, why)
    command = " ".join(words).replace(state["folder"], on(host))
    os.execvp("sh", ["sh", "-c", command])


def pvesh():
    verb, path, *options = words
    parts = path.split("/")
    host = parts[2] if parts[1] == "nodes" else HERE
    if host != HERE:
        file = os.path.join(state["etc_pve"], "nodes", host, "ssh_known_hosts")
        why = refusal(host, state["hosts"][host], host, file if os.path.isfile(file) else None)
        if why:
            *before, last = why.splitlines()
            fail(255, "\\n".join([*before, f"proxy handler failed: {last}"]))
    found = state["api"].get(path)
    if found is None:
        fail(2, f"Configuration file '{path}' does not exist")
    given = dict(zip(options[::2], options[1::2]))
    if verb == "set" and found.get("lock"):
        fail(255, f"VM is locked ({found['lock']})")
    if verb == "get":
        assert given.pop("--output-format") == "json", words
        import json

        return print(json.dumps(found))
    if given == {"--delete": "hookscript"}:
        if parts[4] not in state["deaf"]:
            found.pop("hookscript", None)
            keep()
        return
    assert verb == "set" and list(given) == ["--hookscript"], words
    script = os.path.join(on(host), "snippets", given["--hookscript"].split("/")[1])
    if not os.path.isfile(script) or not os.access(script, os.X_OK):
        why = "is not executable" if os.path.isfile(script) else "does not exist"
        fail(255, "400 Parameter verification failed.\\nhookscript: script "
            f"'{given['--hookscript']}' {why}\\n\\npvesh set <api_path> [OPTIONS] [FORMAT_OPTIONS]")
    if parts[4] in state["busy"]:
        fail(255, f"can't lock file '/var/lock/qemu-server/lock-{parts[4]}.conf' - got timeout")
    if parts[4] not in state["deaf"]:
        found["hookscript"] = given["--hookscript"]
        keep()


{"ssh": ssh, "pvesh": pvesh}[tool]()
'''


class Cluster:
    """Three hosts; this is pve1. Guests 101 here, 102 on pve2, and the container 200.

    Each host has its key in a file of its own, and the storage nas is shared.
    """

    def __init__(self, folder):
        self.etc_pve = folder / "pve"
        self.folder = folder / "nas"
        self.folder.mkdir()
        self.tools = folder / "bin"
        self.tools.mkdir()
        for tool in ("pvesh", "ssh"):
            (self.tools / tool).write_text(TOOL)
            (self.tools / tool).chmod(0o755)
        self._state = folder / "cluster"
        self.environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "CLUSTER": str(self._state)}
        self._write(
            {
                "calls": [],
                "folder": str(self.folder),
                "etc_pve": str(self.etc_pve),
                "hosts": HOSTS,
                "keys": {host: f"ssh-rsa KEY-OF-{host}" for host in HOSTS},
                "merged": [],
                "sharing": ["pve2", "pve3"],
                **{trait: [] for trait in ("dead", "silent", "denied", "busy", "deaf")},
                "api": _answers(self.folder),
            }
        )
        for host in HOSTS:
            self.write_key(host, f"ssh-rsa KEY-OF-{host}")

    def write_key(self, host, key):
        file = self.etc_pve / "nodes" / host / "ssh_known_hosts"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{host} {key}\n")

    def forget_keys(self):
        """As before 2024."""
        for file in self.etc_pve.glob("nodes/*/ssh_known_hosts"):
            file.unlink()

    def change(self, **traits):
        self._write(self.state | traits)

    def answer(self, place, /, **traits):
        """Change an object of the API; None takes a trait away."""
        api = self.state["api"]
        api[place] = {key: value for key, value in (api[place] | traits).items() if value is not None}
        self.change(api=api)

    def host(self, name, /, **traits):
        """Change a host's row."""
        api = self.state["api"]
        next(row for row in api["/cluster/status"] if row.get("name") == name).update(traits)
        self.change(api=api)

    def unshare(self):
        """Make the storage one of each host's own."""
        self.answer("/storage/nas", shared=None)
        self.change(sharing=[])
        for host in ("pve2", "pve3"):
            self.folder_on(host).mkdir()

    def folder_on(self, host):
        return self.folder if host == "pve1" else self.folder.with_name(f"nas@{host}")

    def file_on(self, host):
        return self.folder_on(host) / "snippets" / "fencer-hook"

    def lay(self, host, content, mode=0o755):
        file = self.file_on(host)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)

    @property
    def file(self):
        return self.file_on("pve1")

    @property
    def state(self):
        return ast.literal_eval(self._state.read_text())

    @property
    def hooks(self):
        return {
            path.split("/")[4]: config["hookscript"]
            for path, config in self.state["api"].items()
            if path.endswith("/config") and "hookscript" in config
        }

    @property
    def files(self):
        """Return all that lies on the storage, on any host."""
        return sorted(
            path.relative_to(self.folder.parent)
            for path in Path(self.folder.parent).glob("nas*/**/*")
            if path.is_file()
        )

    def calls(self, tool):
        return [words for name, *words in self.state["calls"] if name == tool]

    def _write(self, state):
        self._state.write_text(ascii(state))


def _answers(folder):
    return {
        "/storage/nas": {
            "storage": "nas",
            "type": "nfs",
            "path": str(folder),
            "content": "iso,snippets",
            "shared": 1,
        },
        "/cluster/status": [
            {"type": "cluster", "name": "home", "quorate": 1},
            *(
                {"type": "node", "name": name, "local": int(name == "pve1"), "online": 1, "ip": ip}
                for name, ip in HOSTS.items()
            ),
        ],
        "/cluster/resources": [
            {"type": "qemu", "vmid": 101, "node": "pve1"},
            {"type": "qemu", "vmid": 102, "node": "pve2"},
            {"type": "lxc", "vmid": 200, "node": "pve1"},
        ],
        "/nodes/pve1/qemu/101/config": {"name": "k8s-1"},
        "/nodes/pve2/qemu/102/config": {"name": "k8s-2"},
    }

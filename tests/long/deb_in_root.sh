#!/bin/sh
# What an administrator does with the package on a Debian where nothing runs: deb_in_root.sh PACKAGE PYTHON
#
# Run in a clean root by deb.py. Each step says what it is; the first that is not as it should be ends it.
set -eu
package=$1 python=$2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

say() { printf '\n--- %s\n' "$*"; }
fail() {
    printf 'not so: %s\n' "$*"
    exit 1
}
is_told() { # is_told WORDS COMMAND…
    wanted=$1
    shift
    told=$("$@" 2>&1) || true
    printf '%s\n' "$told"
    case $told in *"$wanted"*) ;; *) fail "$* does not say: $wanted" ;; esac
}
all_files() { # what the package may leave something in; dpkg's and apt's own books are theirs
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /root -o -path /var/cache \
        -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -printf '%p %m %u %g\n' |
        grep -v '^/etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)- ' | sort
    cat /etc/passwd /etc/group
}

say "what it depends on and suggests"
apt-get -qq update
apt-get -qq install -y --no-install-recommends systemd python3-libvirt >/dev/null
all_files >/tmp/before

say "install"
apt-get -qq install -y --no-install-recommends "$package"
[ "$(stat -c '%U %a' /etc/fencer /var/lib/fencer | xargs)" = 'root 755 fencer 755' ] || fail "folders: $(ls -ld /etc/fencer /var/lib/fencer)"
[ ! -e /etc/fencer/config.yaml ] || fail "a configuration that nobody wrote"
[ ! -e /etc/systemd/system/multi-user.target.wants/fencer.service ] || fail "the agent is enabled"

say "what it says"
is_told "Python              $python" fencer version
is_told "libvirt binding" fencer version
fencer version | grep -q 'libvirt binding  *[0-9]' || fail "python3-libvirt is not used"
code=0
fencer check || code=$?
[ $code = 2 ] || fail "fencer check without a configuration: exit code $code"
is_told "double writers 0" fencer demo
is_told "reads none" sh -c '/usr/share/fencer/fencer-guest --help >/dev/null && echo reads none'
is_told "python3 -I" head -n 1 /usr/bin/fencer
[ -n "$(find /usr/lib/fencer -name "*.pyc" -print -quit)" ] || fail "nothing is compiled"

say "libvirt, by Debian's binding"
cat >/tmp/config.yaml <<'END'
mode: observe
kubernetes: {kubeconfig: /tmp/kubeconfig}
hypervisors: [{name: kvm, type: libvirt, uri: "test:///default"}]
END
cat >/tmp/kubeconfig <<'END'
{"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
 "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "x", "user": {"token": "x"}}]}
END
chmod 600 /tmp/kubeconfig /tmp/config.yaml
is_told "kvm" fencer check --config /tmp/config.yaml
fencer check --config /tmp/config.yaml 2>&1 | grep -i 'libvirt' | grep -qv 'not installed' || fail "no word of libvirt"

say "apprise's own process finds what lies beside fencer"
printf '{"title": "t", "text": "x", "type": "info", "urls": ["json://127.0.0.1:1/"]}' |
    python3 -I /usr/lib/fencer/fencer/notify/apprise_child.py 30 >/tmp/told || fail "exit code $?"
cat /tmp/told
grep -q '^\[false' /tmp/told || fail "no answer of apprise's"

say "units"
systemd-analyze verify /usr/lib/systemd/system/fencer.service /usr/lib/systemd/system/fencer@.service

say "upgrade over itself; what an administrator changed stays"
echo 'mode: observe' >/etc/fencer/config.yaml
echo '# mine' >>/etc/fencer/config.yaml.example
apt-get -qq install -y --reinstall --no-install-recommends "$package"
tail -n 1 /etc/fencer/config.yaml.example | grep -q mine || fail "a conffile was overwritten"
is_told "fencer" fencer version

say "remove, and purge"
apt-get -qq remove -y fencer
[ -e /etc/fencer/config.yaml ] || fail "remove took the configuration"
[ -z "$(find /usr/lib/fencer 2>/dev/null)" ] || fail "left: $(find /usr/lib/fencer | head -n 3)"
apt-get -qq purge -y fencer
all_files >/tmp/after
diff /tmp/before /tmp/after || fail "purge left something, or took too much"
printf 'Debian %s, Python %s: all of it\n' "$(cat /etc/debian_version)" "$python"

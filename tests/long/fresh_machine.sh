#!/bin/sh
# What a new user does on a fresh Debian, by the README: its two commands, in a clone.
set -eu
cd ~/fencer
printf 'Debian %s, Python %s\n' "$(cat /etc/debian_version)" "$(python3 -c 'import platform; print(platform.python_version())')"
./dev demo
set -- ~/.cache/fencer/controlplane/*/fencer-controlplane
[ -e "$1" ] && printf 'the test control plane comes from this machine: %s\n' "$*"
./dev test || { code=$?; printf './dev test failed\n'; exit $code; }
# What that leaves out: the libvirt and the systemd here are others.
./dev test -m '(e2e or slow) and not smoke' || { code=$?; printf 'the end-to-end and slow tests failed\n'; exit $code; }
printf 'libvirt %s, %s: both commands passed\n' "$(libvirtd --version | sed 's/.* //')" "$(.venv/bin/python --version)"

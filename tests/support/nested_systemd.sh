#!/bin/sh
# Becomes systemd as process 1 of namespaces of its own: nested_systemd.sh FOLDER CHECKOUT PYTHON SITE_PACKAGES
# The same of another root, with this machine's network:   nested_systemd.sh FOLDER ROOT
#
# Its root is this machine's, under a layer in memory: what is written there is gone with it. Nothing that the machine
# has enabled starts there, no guest of its libvirt is known, and there is no network but a loopback of its own.
set -eu
if [ "${1:-}" != inside ]; then
    mount_point=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    group=$mount_point$(sed -n 's/^0:://p' /proc/self/cgroup)/fencer-nested-$$
    mkdir "$group"
    echo "$group" > "$1/cgroup"
    echo $$ > "$group/cgroup.procs"
    net=--net
    [ $# -gt 2 ] || net=
    # shellcheck disable=SC2086 # a word or none
    exec unshare --mount --pid --fork --kill-child --uts --ipc --cgroup $net sh "$0" inside "$@"
fi
shift
hostname nested
mount --make-rprivate /
if [ $# -gt 2 ]; then
    layer=$1 checkout=$2 python=$3 site=$4
    ip link set lo up
    mount -t tmpfs -o mode=755 tmpfs "$layer"
    mkdir "$layer/upper" "$layer/work" "$layer/root"
    mount -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
    root=$layer/root
    mkdir -p "$root/opt/fencer" "$root/opt/python" "$root/opt/site"
    mount --rbind "$checkout" "$root/opt/fencer"
    mount --rbind "$python" "$root/opt/python"
    mount --rbind "$site" "$root/opt/site"
    empty="run tmp dev etc/systemd/system etc/libvirt var/lib/libvirt"
else
    root=$2
    mount --bind "$root" "$root"
    empty="run tmp dev"
fi
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for folder in $empty; do
    mkdir -p "$root/$folder"
    mount -t tmpfs -o mode=755 tmpfs "$root/$folder"
done
chmod 1777 "$root/tmp"
for device in null zero full random urandom tty; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -p "$root/dev/pts" "$root/dev/shm" "$root/old"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
printf '[Unit]\nDescription=Nothing, until a test starts it\n' > "$root/etc/systemd/system/nested.target"
# What the agent is ordered after, and nobody here would ever reach.
ln -sf /dev/null "$root/etc/systemd/system/network-online.target"
cd "$root"
pivot_root . old
umount -l /old
exec env -i container=nested PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit=nested.target --log-target=console --show-status=false

#!/bin/sh
# Runs a command as a machine of its own would: enter.sh ROOT CACHE COMMAND…
#
# In namespaces of its own (mounts, processes, host name: see clean_debian.py), so that all ends with it and the
# machine's root stays as it is. CACHE is the folder of the machine that is to be root's cache of fencer there.
set -eu
root=$1 cache=$2
shift 2
hostname fresh
mount --bind "$root" "$root" # a mount point, as every machine's root is: or nothing within gets mounts of its own
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mkdir -p "$root/root/.cache/fencer/controlplane"
mount --bind "$cache/controlplane" "$root/root/.cache/fencer/controlplane"
exec chroot "$root" "$@"

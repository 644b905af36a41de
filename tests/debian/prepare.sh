#!/bin/sh
# Runs in the new root, by chroot: what a node needs, and nothing that takes time at boot. It is emulated, and each
# process that starts costs tenths of a second.
#
# Arguments: the kernel's package; modules for the initrd; modules for the disk.
set -eu
apt-get -qq update
package=$(apt-cache depends "$1" | sed -n 's/.*Depends: //p')
cd /
apt-get -qq download "$package"
dpkg-deb -x "$package"_*.deb /kernel
rm "$package"_*.deb
version=$(ls /kernel/usr/lib/modules)
depmod -b /kernel/usr "$version"
files() {
    for module in $1; do modprobe -d /kernel/usr -S "$version" --show-depends "$module"; done |
        sed -n 's/^insmod \([^ ]*\).*/\1/p'
}
files "$2" > /kernel/order
for file in $(files "$3"); do install -D -m 644 -t "$(dirname "${file#/kernel}")" "$file"; done
cp /kernel/usr/lib/modules/"$version"/modules.builtin* /usr/lib/modules/"$version"
depmod "$version"

echo node > /etc/hostname
echo 0123456789abcdef0123456789abcdef > /etc/machine-id  # not a first boot: nothing is preset
rm -f /etc/fstab  # the initrd mounts what there is
passwd -q -d root
cat > /etc/systemd/network/10-qemu.network <<'N'
[Match]
Name=en* eth*
[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
LinkLocalAddressing=no
IPv6AcceptRA=no
N
systemctl -q enable systemd-networkd
# By its device it is started at boot only, and not after a soft-reboot.
systemctl -q add-wants multi-user.target qemu-guest-agent.service
systemctl -q mask systemd-timesyncd apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap fstrim.timer systemd-networkd-wait-online systemd-sysusers systemd-random-seed \
    systemd-binfmt systemd-pstore modprobe@ systemd-modules-load systemd-sysctl systemd-network-generator \
    systemd-tmpfiles-setup systemd-tmpfiles-setup-dev systemd-tmpfiles-clean.timer systemd-journal-flush \
    systemd-update-utmp systemd-update-utmp-runlevel systemd-user-sessions systemd-initctl.socket getty.target \
    systemd-ask-password-wall.path systemd-ask-password-console.path dev-hugepages.mount dev-mqueue.mount \
    sys-kernel-debug.mount sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount tmp.mount \
    systemd-creds.socket systemd-hostnamed.socket systemd-pcrextend.socket systemd-pcrlock.socket \
    systemd-sysext.socket systemd-tpm2-setup-early systemd-tpm2-setup systemd-pcrmachine systemd-pcrphase \
    systemd-pcrphase-sysinit systemd-tmpfiles-setup-dev-early systemd-hibernate-clear ldconfig \
    systemd-firstboot systemd-hwdb-update systemd-journal-catalog-update systemd-machine-id-commit \
    systemd-update-done systemd-udev-load-credentials systemd-networkd-persistent-storage \
    sys-fs-fuse-connections.mount sys-kernel-config.mount run-lock.mount kmod-static-nodes
# Nothing is generated here, and each generator would run at every `daemon-reload` too.
rm /usr/lib/systemd/system-generators/*
# Debian's own daemons without their sandboxes, which cost more than what they do. Ours keep theirs.
for daemon in journald udevd networkd logind; do
    sed -i -E '/^(Protect|Private|Restrict|SystemCall|LockPersonality|MemoryDeny|NoNewPriv|IPAddressDeny)/d' \
        "/usr/lib/systemd/system/systemd-$daemon.service"
done
mkdir -p /etc/systemd/journald.conf.d /etc/systemd/system/systemd-udev-trigger.service.d \
    /etc/systemd/system/qemu-guest-agent.service.d
# Asked to shut down, on a busy machine, it once did not end: systemd waits 90 s then.
printf '[Service]\nTimeoutStopSec=10s\n' > /etc/systemd/system/qemu-guest-agent.service.d/stop.conf
cat > /etc/systemd/journald.conf.d/one-boot.conf <<'J'
[Journal]
Storage=volatile
ReadKMsg=no
J
# The power button, the guest agent's port, and the network: what somebody here waits for.
cat > /etc/systemd/system/systemd-udev-trigger.service.d/few.conf <<'U'
[Service]
ExecStart=
ExecStart=udevadm trigger --action=add --subsystem-match=input --subsystem-match=virtio-ports --subsystem-match=net
U
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* \
    /usr/share/locale/* /usr/share/i18n /usr/lib/locale /prepare.sh

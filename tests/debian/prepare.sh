#!/bin/sh
# Runs in the new root, by chroot: what a node needs, and nothing that takes time at boot. It is emulated, and each
# process that starts costs tenths of a second.
set -eu
apt-get -qq update
package=$(apt-cache depends "$1" | sed -n 's/.*Depends: //p')
cd /
apt-get -qq download "$package"
dpkg-deb -x "$package"_*.deb /kernel
rm "$package"_*.deb

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
systemctl -q mask systemd-timesyncd apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap fstrim.timer systemd-networkd-wait-online systemd-sysusers systemd-random-seed \
    systemd-binfmt systemd-pstore modprobe@ systemd-modules-load systemd-sysctl systemd-network-generator \
    systemd-tmpfiles-setup systemd-tmpfiles-setup-dev systemd-tmpfiles-clean.timer systemd-journal-flush \
    systemd-update-utmp systemd-update-utmp-runlevel systemd-user-sessions systemd-initctl.socket getty.target \
    systemd-ask-password-wall.path systemd-ask-password-console.path dev-hugepages.mount dev-mqueue.mount \
    sys-kernel-debug.mount sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount
# Nothing is generated here, and each generator would run at every `daemon-reload` too.
rm /lib/systemd/system-generators/*
# Debian's own daemons without their sandboxes, which cost more than what they do. Ours keep theirs.
for daemon in journald udevd networkd logind; do
    sed -i -E '/^(Protect|Private|Restrict|SystemCall|LockPersonality|MemoryDeny|NoNewPriv|IPAddressDeny)/d' \
        "/lib/systemd/system/systemd-$daemon.service"
done
mkdir -p /etc/systemd/journald.conf.d /etc/systemd/system/systemd-udev-trigger.service.d
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

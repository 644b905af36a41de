#!/bin/sh
# Runs in the new root, by chroot: what a node needs, and nothing that takes time at boot.
set -eu
apt-get -qq update
package=$(apt-cache depends "$1" | sed -n 's/.*Depends: //p')
cd /
apt-get -qq download "$package"
dpkg-deb -x "$package"_*.deb /kernel
rm "$package"_*.deb

echo node > /etc/hostname
echo 0123456789abcdef0123456789abcdef > /etc/machine-id  # not a first boot: nothing is preset
echo '/dev/vda / ext4 rw,relatime 0 0' > /etc/fstab
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
    e2scrub_all.timer e2scrub_reap fstrim.timer systemd-networkd-wait-online getty@tty1 serial-getty@ttyS0 \
    systemd-sysusers systemd-update-utmp-runlevel systemd-random-seed systemd-binfmt systemd-pstore modprobe@
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/* /usr/share/doc/* /usr/share/man/* \
    /usr/share/locale/* /usr/share/i18n /usr/lib/locale /prepare.sh

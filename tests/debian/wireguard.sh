#!/bin/sh
# A WireGuard interface with its peer outside, under Debian's own unit and `wg-quick`. After `outside`.
set -eu
umask 077
cd /etc/wireguard
wg genkey > inside.key
wg genkey > outside.key
# Its socket stays where it is made, and so both ends reach each other over lo.
ip link add wg1 type wireguard
wg set wg1 listen-port 51820 private-key outside.key peer "$(wg pubkey < inside.key)" allowed-ips 10.9.0.2/32
ip link set wg1 netns outside
ip -n outside address add 10.9.0.1/24 dev wg1
ip -n outside link set wg1 up
cat > wg0.conf <<C
[Interface]
PrivateKey = $(cat inside.key)
Address = 10.9.0.2/24
[Peer]
PublicKey = $(wg pubkey < outside.key)
Endpoint = 127.0.0.1:51820
AllowedIPs = 10.0.2.2/32
C
systemctl start wg-quick@wg0

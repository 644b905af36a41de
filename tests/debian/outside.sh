#!/bin/sh
# Takes the network card away, into a namespace that stands for the world outside and forwards for its guests: from now
# on, and until the next boot, only a VPN leads to the API server.
set -eu
ip netns add outside
ip link set eth0 netns outside
ip -n outside address add 10.0.2.15/24 dev eth0
ip -n outside link set eth0 up
# The host asks for our address there: who is behind us is answered for.
ip netns exec outside sh -c 'cd /proc/sys/net/ipv4 && echo 1 > ip_forward && echo 1 > conf/eth0/proxy_arp'

"""A real Debian with systemd and logind, as a node runs it: built once, kept outside the checkout."""

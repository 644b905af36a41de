"""Proxmox VE: one `ProxmoxHypervisor` per cluster, or per standalone host.

Towards the API: `settings`, `server` (one API server), `servers` (several in turn), `api` (what the rest asks
of them), `errors`. Pure: `fields` and `parse` (answers as records), `states` (words to power states), `ha`
(what a recovery by HA proves, folded over time), `tasks`, `rights`. Between them: `look` (who answers),
`proof` (one guest, well enough to act) with `moves`, `absent` and `deadhost` for guests not where they
ran, and `leftover` for locks that nobody takes off; `sweep` (all guests, cheaply) with `processes` (whose is
gone), `power`, `memory` (kept between two looks). `client` is the port.
"""

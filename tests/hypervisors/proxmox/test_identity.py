"""Which Proxmox VE this is: by its own certificate authority, whoever asks, and over whichever server."""

import pytest

from tests.support.pve.model import Pmxcfs


def test_it_is_the_same_each_time_over_each_server_and_whatever_it_is_called(home):
    first = home.hypervisor.describe()
    assert first.problems == ()
    assert first.identity.startswith("proxmox:")
    assert len(first.identity) == len("proxmox:") + 64
    others = [home.agent(servers=(url,), name="otherwise") for url in home.api.urls]
    told = {agent.describe().identity for agent in (home.hypervisor, *others)}
    assert told == {first.identity}


def test_one_that_names_no_authority_of_its_own_is_not_named_by_anything_else(home, monkeypatch):
    """Where /etc/pve is not mounted, the file is missing from the answer."""
    before = home.hypervisor.describe()
    home.pve.hosts["pve1"].authority = False
    info = home.agent(servers=home.api.urls[:1]).describe()
    assert before.identity is not None
    assert info.identity is None
    (problem,) = info.problems
    assert problem == (
        "It cannot be told which Proxmox VE this is: home: pve1 names no pve-root-ca.pem: is /etc/pve mounted there?"
    )

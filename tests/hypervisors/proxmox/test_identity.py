"""Which Proxmox VE this is: by its own certificate authority, whoever asks, and over whichever server."""


def test_it_is_the_same_over_each_server_and_whatever_it_is_called(home):
    first = home.hypervisor.describe()
    assert first.problems == ()
    assert first.identity.startswith("proxmox:")
    assert len(first.identity) == len("proxmox:") + 64
    others = [home.agent(servers=(url,), name="otherwise") for url in home.api.urls]
    assert {agent.describe().identity for agent in others} == {first.identity}


def test_one_whose_authority_cannot_be_seen_is_not_named_by_anything_else(home):
    """Where /etc/pve is not mounted, its file is missing from the answer."""
    home.pve.hosts["pve1"].authority = False
    info = home.agent(servers=home.api.urls[:1]).describe()
    assert info.identity is None
    (problem,) = info.problems
    assert problem.startswith("It cannot be told which Proxmox VE this is: ")
    assert problem.endswith("pve1 names no pve-root-ca.pem: is /etc/pve mounted there?")
    assert home.agent(servers=home.api.urls[1:2]).describe().identity is not None

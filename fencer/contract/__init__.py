"""What an adapter to a hypervisor must do, as tests: fencer's own adapters run them, and those of others.

``pip install "fencer-agent[contract]"``, then ``pytest --adapter=NAME`` runs them on the adapter NAME that an
installed package brings, in the lab that the same package brings; see docs/adapters.md. `hypervisor` is the
contract, `others` what is asked of adapters of others besides, `suite` puts both together. `backstage` is
what the contract asks for beside the port, `lab` the same as a package brings it, `needs` names what a lab
may be unable to do, `plugin` is pytest's. Nothing else in fencer imports this room, nor pytest.
"""

GROUP = "fencer.labs"
"""The group of entry points that name labs. It is here because `plugin` is loaded wherever fencer is
installed."""

"""Which guest is meant by what some agent wrote on a Node: each configuration has its own names.

A hypervisor has an identity of its own, see `fencer.ports.EndpointInfo`. What is written names a guest with
that beside the endpoint's name; what is read is put into the names of one's own configuration. Fencers before
that wrote none: such a text goes by the endpoint's name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from fencer.core.model import Binding, FenceMark, GuestRef, NodeView, Note

ANOTHER = "another "
"""Before the name of an endpoint, in what another hypervisor is called that others call the same. No
endpoint is called so: there is no space in their names."""
UNIDENTIFIED = "unidentified "
"""The same, while the endpoint of that name answers and can't report its identity: it may be that one."""


@dataclass(frozen=True, slots=True)
class Identities:
    """Which hypervisor each endpoint of one's own configuration is, as far as it is known.

    Attributes:
        told: Endpoint → its identity; empty: it has none.
        untold: Endpoints that answer, and could not say it.
    """

    told: Mapping[str, str] = field(default_factory=dict)
    untold: Collection[str] = ()

    def written(self, guest: GuestRef) -> GuestRef:
        """Return a guest as it is written on a Node."""
        identity = self.told.get(guest.endpoint)
        return replace(guest, hypervisor=identity) if identity else guest

    def read(self, guest: GuestRef) -> GuestRef:
        """Return a guest that was read on a Node in one's own names; if nothing changes, the same object.

        An endpoint that has not answered yet goes by its name: nothing that it says can be acted upon, and a
        power witness of its host can still speak of its guests.
        """
        if not guest.hypervisor or self.told.get(guest.endpoint) == guest.hypervisor:
            return guest
        here = (endpoint for endpoint, identity in self.told.items() if identity == guest.hypervisor)
        endpoint = next(here, None)
        if endpoint is None and guest.endpoint in self.told:
            endpoint = f"{ANOTHER}{guest.endpoint}"
        elif endpoint is None and guest.endpoint in self.untold:
            endpoint = f"{UNIDENTIFIED}{guest.endpoint}"
        return guest if endpoint is None else replace(guest, endpoint=endpoint)


def named(node: NodeView, as_named: Callable[[GuestRef], GuestRef]) -> NodeView:
    """Return a node with each guest that is written on it named in another way.

    Args:
        node: The node.
        as_named: Returns a guest with its other name; the same object if it has none.

    Returns:
        The same object, if no guest has.
    """
    binding, mark, doubts = node.binding, node.mark, node.doubts
    if isinstance(binding, Binding) and (bound := as_named(binding.guest)) is not binding.guest:
        binding = replace(binding, guest=bound)
    if isinstance(mark, FenceMark) and (fenced := as_named(mark.guest)) is not mark.guest:
        mark = replace(mark, guest=fenced)
    if isinstance(doubts, tuple) and any(as_named(doubt.guest) is not doubt.guest for doubt in doubts):
        doubts = tuple(replace(doubt, guest=as_named(doubt.guest)) for doubt in doubts)
    if binding is node.binding and mark is node.mark and doubts is node.doubts:
        return node
    return replace(node, binding=binding, mark=mark, doubts=doubts)


def goes_by_identity(written: NodeView | Note) -> bool:
    """Whether any guest that is written on a node, or noted by an agent, has its hypervisor's identity."""
    other = written.instead_of if isinstance(written, Note) else written.mark
    guests = [one.guest for one in (written.binding, other) if isinstance(one, Binding | FenceMark)]
    if isinstance(written.doubts, tuple):
        guests += [doubt.guest for doubt in written.doubts]
    return any(guest.hypervisor for guest in guests)

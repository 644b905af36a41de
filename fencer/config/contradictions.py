"""Errors that no key shows alone: repeated names, references to nothing, times that do not fit."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from fencer.config import transport
from fencer.config.document import Document, Place, Problem, quoted, spell
from fencer.config.policy_section import DEFAULTS, FIELDS, PolicySection
from fencer.config.receiver_texts import is_url
from fencer.config.schema import OTHERS, VirtualBoxSection, whose
from fencer.config.texts import canonical_guest, is_uuid, is_vmid
from fencer.core.policy import Mode, Policy
from fencer.core.text import near, printable

_UNIQUE = {
    "name": "names must be unique",
    "uri": "every guest would be found twice",
    "command": "every guest would be found twice",
    "settings": "every guest would be found twice",
}
_WITHOUT = {("virtualbox", "command"): VirtualBoxSection.model_fields["command"].default}
"""Stands for a key that is not written."""

_INSTEAD = {
    "uri": "use qemu+ssh:// or qemu+tls://, and have the host verified",
    "command": "have ssh verify the host (its key in known_hosts)",
}
_TAKE = f"add `{transport.KEY}: true` beside it"
_NUMBER = re.compile(r"-?\d[\d.e+-]*")


def contradictions(document: Document, wrong: AbstractSet[str]) -> tuple[Problem, ...]:
    """Find what does not fit together.

    Args:
        document: The parsed file.
        wrong: Top-level keys that the schema already objects to: nothing that depends on their shape is
            checked.
    """
    written = document.root if isinstance(document.root, dict) else {}
    hypervisors = _mappings(written.get("hypervisors"))
    found = [problem for name in _UNIQUE for problem in _twice(document, hypervisors, name)]
    found += [
        problem for index, item in enumerate(hypervisors) for problem in _witnesses(document, index, item)
    ]
    found += [problem for index, item in enumerate(hypervisors) for problem in _way(document, index, item)]
    found += _receivers(document, written.get("notify"))
    if "nodes" not in wrong:
        types = {name: item.get("type") for item in hypervisors if isinstance(name := item.get("name"), str)}
        found += _nodes(document, written.get("nodes") or {}, types)
    if "policy" not in wrong:
        found += _policy(document, written.get("policy") or {})
    return tuple(found)


def _mappings(listed: Any) -> list[dict[str, Any]]:
    """Return the mappings of a list; in place of anything else an empty one, so that places stay right."""
    return [item if isinstance(item, dict) else {} for item in listed] if isinstance(listed, list) else []


def _twice(
    document: Document, items: list[dict[str, Any]], name: str, within: Place = ("hypervisors",)
) -> Iterator[Problem]:
    first: dict[str, Place] = {}
    for index, item in enumerate(items):
        value = item.get(name, _WITHOUT.get((str(item.get("type")), name)))
        if name == "settings" and whose(item) == OTHERS:
            value = [item.get("type"), value or {}]
        if not isinstance(value, str | list):
            continue
        place: Place = (*within, index, name)
        earlier = first.setdefault(repr(value), place)
        if earlier != place:
            same = f"{spell(earlier)} (line {document.line(earlier)})"
            yield Problem(document.line(place), f"{spell(place)}: the same as {same}: {_UNIQUE[name]}")


def _witnesses(document: Document, index: int, hypervisor: dict[str, Any]) -> Iterator[Problem]:
    """Find hosts with two witnesses: which one should be believed?"""
    listed = hypervisor.get("host_power")
    first: dict[str, Place] = {}
    for number, item in enumerate(listed if isinstance(listed, list) else ()):
        host = item.get("host") if isinstance(item, dict) else None
        if not isinstance(host, str):
            continue
        place: Place = ("hypervisors", index, "host_power", number, "host")
        earlier = first.setdefault(host, place)
        if earlier != place:
            same = f"{spell(earlier)} (line {document.line(earlier)})"
            yield Problem(document.line(place), f"{spell(place)}: the same as {same}: one witness a host")


def _way(document: Document, index: int, hypervisor: dict[str, Any]) -> Iterator[Problem]:
    """Find ways on which anybody may answer, unless accepted on purpose; and needless keys for that."""
    uri, command = hypervisor.get("uri"), hypervisor.get("command")
    if isinstance(uri, str):
        name, why = "uri", transport.of_uri(uri)
    elif isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        name, why = "command", transport.of_command(command)
    else:
        return
    taken = hypervisor.get(transport.KEY) is True
    place: Place = ("hypervisors", index, transport.KEY if taken else name)
    if why is not None and not taken:
        yield Problem(
            document.line(place), f"{spell(place)}: {why}: {_INSTEAD[name]}, or, in a test, {_TAKE}"
        )
    elif why is None and taken:
        text = f"{spell(place)}: true, but the way there is authentic: leave this key out"
        yield Problem(document.line(place), text)


def _receivers(document: Document, notify: Any) -> Iterator[Problem]:
    """Find receivers of one name, and ways in the clear that nobody accepted on purpose."""
    receivers = _mappings(notify.get("receivers") if isinstance(notify, dict) else None)
    yield from _twice(document, receivers, "name", ("notify", "receivers"))
    for index, item in enumerate(receivers):
        yield from _in_clear(document, ("notify", "receivers", index), item)


def _in_clear(document: Document, place: Place, receiver: dict[str, Any]) -> Iterator[Problem]:
    server, servers = receiver.get("server"), receiver.get("servers")
    urls: list[tuple[Place, Any]] = [((*place, "server"), server)]
    if isinstance(servers, list):
        urls += [((*place, "servers", number), url) for number, url in enumerate(servers)]
    named = [(where, url) for where, url in urls if isinstance(url, str) and is_url(url)]
    open_to_others = [(where, why) for where, url in named if (why := transport.of_url(url)) is not None]
    taken = receiver.get(transport.KEY) is True
    if taken and named and not open_to_others:
        where = (*place, transport.KEY)
        closed = "the way there is encrypted, or stays on this machine"
        yield Problem(document.line(where), f"{spell(where)}: true, but {closed}: leave this key out")
    for where, why in () if taken else open_to_others:
        text = f"{spell(where)}: {why}: use https://, or, where nobody else is in between, {_TAKE}"
        yield Problem(document.line(where), text)


def _nodes(document: Document, nodes: dict[str, str], types: dict[str, Any]) -> Iterator[Problem]:
    """Check the map of nodes to guests.

    Args:
        document: The parsed file.
        nodes: Node → what is written for it.
        types: Hypervisor → what is written as its type.
    """
    first: dict[str, str] = {}
    names = list(types)
    for node, target in nodes.items():
        place: Place = ("nodes", node)
        endpoint, _, guest = target.partition("/")
        if endpoint not in types:
            hint = near(endpoint, names) or (f"; there is {printable(', '.join(names))}" if names else "")
            text = f"{spell(place)}: no hypervisor is named {quoted(endpoint)}{hint}"
            yield Problem(document.line(place), text)
        elif types[endpoint] == "proxmox" and not (is_vmid(guest) or is_uuid(guest)):  # W1
            text = f"on Proxmox write the VM's number, as `qm list` shows it, not {quoted(guest)}"
            text = f"{spell(place)}: {text}"
            yield Problem(document.line(place), text)
        earlier = first.setdefault(canonical_guest(target), node)
        if earlier != node:
            text = f"{spell(place)}: {earlier} (line {document.line(('nodes', earlier))}) is the same guest"
            yield Problem(document.line(place), text)


def _policy(document: Document, written: dict[str, Any]) -> Iterator[Problem]:
    try:
        policy = PolicySection.model_validate(written).policy(Mode.OBSERVE)
    except ValidationError:
        return  # the schema did not get there: it stops at a key that is no text
    for sentence in policy.violations():
        lines = {name: document.line(("policy", name)) for name in _involved(policy, sentence, written)}
        places = ", ".join(f"{name} on line {line}" for name, line in lines.items())
        first = min((line for line in lines.values() if line), default=document.line(("policy",)))
        yield Problem(first, f"policy: {sentence}" + (f" [{places}]" if len(lines) > 1 else ""))


def _involved(policy: Policy, sentence: str, written: dict[str, Any]) -> list[str]:
    """Name the written keys that break the rule: it names them, or their default would mend it."""
    rule = _NUMBER.sub("#", sentence)
    involved = []
    for name in written:
        field = FIELDS[name]
        mended = replace(policy, **{field: getattr(DEFAULTS, field)}).violations()
        named = re.search(rf"\b{name}\b", sentence) is not None
        if named or rule not in {_NUMBER.sub("#", other) for other in mended}:
            involved.append(name)
    return involved

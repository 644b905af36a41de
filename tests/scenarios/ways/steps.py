"""What happens in a simulated cluster, and what people do there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from fencer.core import annotations
from fencer.core.consent import HANDED_OVER
from fencer.core.crash_loop import in_crash_loop
from fencer.core.decide import decide
from fencer.core.kept import Kept
from fencer.core.model import FenceMark, Intent, Judged, PowerState, Reason, Taint, Verdict, Word
from fencer.core.pause import PauseNote, write
from fencer.core.requests import Strategy
from fencer.errors import StateError
from fencer.runtime.election import Campaigns
from fencer.runtime.reconcile import Agent
from fencer.simulation.clock import EPOCH
from fencer.simulation.cluster import KEY
from fencer.simulation.faults import What
from fencer.simulation.guests import Guest, Passage
from fencer.simulation.objects import ApiPod
from tests.scenarios.ways.case import NODE, Case, Step

HEALTH_CHECK = "NodeHealthCheck workers"
"""The controller that works on nodes, or asks for them."""


def happens(*whats: What, to: str = "") -> Step:
    """Let something happen to the guest of the node, or to somebody else."""

    def step(case: Case) -> None:
        for what in whats:
            case.breaks(what, to or case.node)

    return step


def in_a_loop(case: Case) -> None:
    """Let the VM crash every half minute, and start again by itself, until fencer reports that."""
    case.loops = True

    def crash() -> None:
        if case.loops:
            case.breaks(What.CRASH, case.node)
            case.simulation.clock.after(2.0, lambda: case.loops and case.breaks(What.START, case.node))
            case.simulation.clock.after(30.0, crash)

    crash()
    case.until(lambda case: case.judged and in_crash_loop(case.judged.decision), 200.0, "a crash loop")


def starts_itself(case: Case) -> None:
    """Let something start the VM whenever it has shut down, as `on_poweroff=restart` does."""
    case.loops = True

    def start(guest: Guest) -> None:
        if case.loops and guest.why == "shutdown":
            case.simulation.clock.after(1.0, lambda: case.breaks(What.START, guest.name))

    case.simulation.world.on_power.append(start)


def out_of_the_loop(*last: What) -> Step:
    """Let it crash no more; at last something may happen to it."""

    def step(case: Case) -> None:
        case.loops = False
        happens(*last)(case)

    return step


def everywhere(what: What) -> Step:
    """Let something happen to the endpoint, or to the API."""
    return lambda case: case.breaks(what)


def waits(seconds: float) -> Step:
    """Let time pass while the agent watches."""
    return lambda case: case.watched(seconds)


def until(reason: Reason, within_s: float = 200.0) -> Step:
    """Watch until a reason is said."""
    return lambda case: case.until(lambda case: case.reason is reason, within_s, str(reason))


def types(*words: str, code: int = 0) -> Step:
    """Type a command, as it is told; WHY is a reason."""

    def step(case: Case) -> None:
        filled = ["it burned down" if word == "WHY" else word for word in words]
        result = case.run(*filled, *([] if words[0] in {"check", "resume"} else ["--yes"]))
        case.said = result.output
        assert result.exit_code == code, result.output

    return step


def asks(intent: Intent, word: Word | None = None) -> Step:
    """Let a command look once, and hold what it says."""

    def step(case: Case) -> None:
        agent = Agent(case._world(), case.policy, case.rules, by="admin, by hand")
        case.judged = agent.step(case.node, intent, word or Word(), act=False)

    return step


def commands(
    intent: Intent,
    reason: Reason,
    word: Word | None = None,
    *,
    refused: bool = False,
    within_s: float = 100.0,
) -> Step:
    """Let a command go on until a reason is said, as a refusal or not, and nothing is done about it."""

    def step(case: Case) -> None:
        agent = Agent(case._world(), case.policy, case.rules, by="admin, by hand")
        clock = case.simulation.clock
        given = replace(word or Word(), given_s=clock.now_s())
        until_s = clock.now_s() + within_s
        while clock.now_s() < until_s:
            case.judged = agent.step(case.node, intent, given, act=False)
            if case.reason is reason and (case.judged.decision.verdict is Verdict.REFUSE or not refused):
                break
            agent.step(case.node, intent, given)
            clock.wait(1.0)

    return step


def sets(**policy: Any) -> Step:
    """Change the configuration, and restart the agent."""

    def step(case: Case) -> None:
        case.policy = replace(case.policy, **policy)
        case.begin()

    return step


def elects(case: Case) -> None:
    """Let the agent take part in the election of who gives orders."""
    simulation = case.simulation
    campaigns = Campaigns(
        simulation.leases,
        simulation.hypervisors,
        simulation.asker,
        simulation.clock,
        "fencer@pve1/boot/1",
        partial(simulation.clock.utc, "microseconds"),
    )
    case.beside(campaigns.steps())
    case.election = campaigns
    case.begin()
    case.watched(20.0)


def another_holds(case: Case) -> None:
    """Let another agent hold the Lease, for as long as it lives."""
    simulation = case.simulation
    leases, name, case.another_lives = simulation.leases, simulation.lease_of("lab"), True

    def renew() -> None:
        utc = simulation.clock.utc("microseconds")
        held = replace(leases.read_lease(name), holder="fencer@pve2/boot/9", acquired=utc, renewed=utc)
        leases.write_lease(held)
        if case.another_lives:
            simulation.clock.after(2.0, renew)

    renew()


def another_dies(case: Case) -> None:
    """Let it renew the Lease no more."""
    case.another_lives = False


def without_lease(case: Case) -> None:
    """Take the hypervisor's Lease away, as if it had never been set up."""
    case.simulation.leases.remove(case.simulation.lease_of("lab"))


def leased(case: Case) -> None:
    """Apply what `fencer setup kubernetes` prints."""
    case.simulation.leases.make(case.simulation.lease_of("lab"))


def maps(guest: str, node: str = NODE) -> Step:
    """Write a node into the configuration's ``nodes:``."""

    def step(case: Case) -> None:
        endpoint, _, name = guest.partition("/")
        case.rules = replace(case.rules, nodes={**case.rules.nodes, node: (endpoint, name)})
        case.begin()

    return step


def knows(*endpoints: str) -> Step:
    """Write an endpoint into the configuration."""

    def step(case: Case) -> None:
        case.knows = endpoints
        case.begin()

    return step


def admits(case: Case) -> None:
    """Admit power actions on every guest."""
    case.rules = replace(case.rules, admitted=case.simulation.rules().admitted)
    case.begin()


def witnessed(case: Case) -> None:
    """Write a power witness for each host into the configuration."""
    case.witnessed = True
    case.begin()


def restarts(case: Case) -> None:
    """Restart the agent."""
    case.begin()


class StateOnDisk:
    """A state file that may be damaged. It is left alone then."""

    def __init__(self) -> None:
        self._kept, self.damaged = Kept(), True

    def load(self) -> Kept:
        """See `fencer.ports.StateStore.load`."""
        if self.damaged:
            raise StateError("its signature is wrong")
        return self._kept

    def confirm(self) -> bool:
        """See `fencer.ports.StateStore.confirm`."""
        return True

    def save(self, kept: Kept) -> None:
        """See `fencer.ports.StateStore.save`."""
        self._kept = kept


def state_damaged(case: Case) -> None:
    """Start the agent again, with a state file that it cannot read."""
    case.state = StateOnDisk()
    case.begin()


def state_mended(case: Case) -> None:
    """Mend the state file; the agent that runs reads it."""
    assert isinstance(case.state, StateOnDisk)
    case.state.damaged = False


def state_moved_away(case: Case) -> None:
    """``mv`` it to another name; the agent that runs finds none, and goes on."""
    state_mended(case)


def forgotten(case: Case) -> None:
    """Do not tell again what was said: the way begins with what happens now."""
    case.judged = None


def annotation(key: str, text: str | None) -> Step:
    """Write an annotation on the Node; None: ``kubectl annotate node NODE KEY-``."""

    def step(case: Case) -> None:
        node = case.api_node
        node.annotations.pop(key, None)
        if text is not None:
            node.annotations[key] = text
        case.simulation.api.changed(node)

    return step


def annotated(key: str, text: str) -> Step:
    """Write an annotation."""
    return annotation(key, text)


def unannotated(key: str) -> Step:
    """``kubectl annotate node NODE KEY-``."""
    return annotation(key, None)


def paused(why: str | None, for_s: float = 0.0) -> Step:
    """Write the pause annotation on kube-system, with an end if it has one, or take it off."""
    return lambda case: setattr(case.simulation.api, "paused_why", why and _pause(case, why, for_s))


def node_paused(why: str, for_s: float) -> Step:
    """Write the pause annotation on the Node, with an end."""
    return lambda case: annotation(annotations.PAUSE, _pause(case, why, for_s))(case)


def _pause(case: Case, why: str, for_s: float) -> str:
    ends = EPOCH + timedelta(seconds=case.simulation.clock.now_s() + for_s)
    return write(PauseNote(why, f"{ends:%Y-%m-%dT%H:%M:%SZ}")) if for_s else why


def labelled(key: str, text: str | None) -> Step:
    """Write a label on the Node; None: ``kubectl label node NODE KEY-``."""

    def step(case: Case) -> None:
        case.api_node.labels.pop(key, None)
        if text is not None:
            case.api_node.labels[key] = text
        case.simulation.api.changed(case.api_node)

    return step


def requested(case: Case) -> None:
    """Let another controller ask for the node by a FencerRemediation."""
    case.simulation.requests.known = True
    case.simulation.requests.make(case.node, Strategy.PROVE, HEALTH_CHECK)


def given_up(case: Case) -> None:
    """Let it give that up, as it does when it turns to another remedy."""
    request = case.simulation.requests.about(case.node)
    assert request is not None
    case.simulation.requests.give_up(request)


def reserved(case: Case) -> None:
    """Let another controller work on the node, and ask nobody."""
    case.simulation.requests.known = True
    case.simulation.requests.reserve(case.node, HEALTH_CHECK)


def left(case: Case) -> None:
    """Let it go on to another node."""
    case.simulation.requests.leave(case.node)


def handed_over(case: Case) -> None:
    """Let the node be handed over to somebody else by a taint."""
    node = case.api_node
    case.simulation.api.set_taints(node, (*node.taints, Taint(HANDED_OVER, "reboot", "NoSchedule")))


def handed_back(case: Case) -> None:
    """Take that taint off."""
    node = case.api_node
    case.simulation.api.set_taints(node, (one for one in node.taints if one.key != HANDED_OVER))


def untainted(case: Case) -> None:
    """``kubectl taint node NODE node.kubernetes.io/out-of-service-``."""
    node = case.api_node
    case.simulation.api.set_taints(node, (one for one in node.taints if "out-of-service" not in one.key))


def uncordoned(case: Case) -> None:
    """``kubectl uncordon NODE``."""
    case.api_node.unschedulable = False
    case.simulation.api.changed(case.api_node)


def stray_pod(case: Case) -> None:
    """Let a pod show up that was bound to the node before it was fenced, and is on the fence's record."""
    api, uid = case.simulation.api, case.simulation.api.new_uid()
    owner, born_s = "StatefulSet/old", case.simulation.clock.now_s() - 3600.0
    seal, notes = annotations.Seal(KEY, case.api_node.uid), case.api_node.annotations
    mark = annotations.read_mark(notes[annotations.MARK], seal)
    assert isinstance(mark, FenceMark)
    notes[annotations.MARK] = annotations.write_mark(
        replace(mark, pod_uids=(*(mark.pod_uids or ()), uid)), seal
    )
    api.changed(case.api_node)
    api.create_pod(ApiPod("demo", "old-0", uid, owner, born_s, node=case.node, phase="Running"))


def forgets_saved(case: Case) -> None:
    """Throw the guest's saved memory away by hand."""
    case.simulation.world.discard(case.simulation.guest(case.node))


def ignores_acpi(case: Case) -> None:
    """Let the guest not care for its power button."""
    case.simulation.guest(case.node).obeys_acpi = False


def deleted(node: str) -> Step:
    """``kubectl delete node NODE``."""
    return lambda case: case.simulation.api.delete_node(node)


def lease_deleted(case: Case) -> None:
    """``kubectl delete lease -n kube-node-lease NODE``."""
    case.api_node.lease = None
    case.api_node.lease_version += 1


def renewed(case: Case) -> None:
    """Let a renewal arrive that was on its way when the guest fell."""
    case.simulation.api.renew(case.api_node)


def reports(uuid: str, node: str = NODE) -> Step:
    """Let a node report this systemUUID; or that of a guest, by its name."""

    def step(case: Case) -> None:
        guest, one = case.simulation.world.guests.get(uuid), case.simulation.api.nodes[node]
        one.system_uuid = uuid if guest is None else guest.uuid
        case.simulation.api.changed(one)

    return step


def added(guest: str) -> Step:
    """Add a guest that is no node."""
    return lambda case: case.simulation.world.add_guest(guest, endpoint="lab", host="lab1")


def has_uuid(guest: str, uuid: str) -> Step:
    """Give a guest another UUID."""
    return lambda case: setattr(case.simulation.guest(guest), "uuid", uuid)


def is_at(guest: str, endpoint: str) -> Step:
    """Let a guest be where that endpoint is, known to fencer or not."""
    return lambda case: setattr(case.simulation.guest(guest), "endpoint", endpoint)


def joins_as(node: str) -> Step:
    """Rename the node: its guest registers under another name from its next boot on."""

    def step(case: Case) -> None:
        case.simulation.guest(case.node).node = node
        case.node = node

    return step


def reads(state: PowerState, words: str) -> Step:
    """Let the hypervisor say this of the guest, whatever it is."""
    return lambda case: setattr(case.simulation.guest(case.node), "passage", Passage(state, words))


def reads_as_it_is(case: Case) -> None:
    """Let the hypervisor tell the guest's state again."""
    case.simulation.guest(case.node).passage = None


def lets_nobody_power(case: Case) -> None:
    """Let the hypervisor refuse every power order."""
    case.simulation.hypervisor.trouble.power_denied = True


def lets_power(case: Case) -> None:
    """Let it carry them out again."""
    case.simulation.hypervisor.trouble.power_denied = False


def lies(state: PowerState) -> Step:
    """Let the hypervisor say this of the guest, as settled."""
    return lambda case: case.simulation.hypervisor.lie(case.node, state)


def moved_to(host: str, *, told: bool) -> Step:
    """Move the guest's configuration; told: there is a record of it."""

    def step(case: Case) -> None:
        guest = case.simulation.guest(case.node)
        case.simulation.hypervisor.trouble.moved.pop(case.node, None)
        guest.came_from = (guest.host,) if told else ()
        guest.host = host

    return step


def is_control_plane(*nodes: str) -> Step:
    """Give nodes the control plane's role."""

    def step(case: Case) -> None:
        for name in nodes:
            node = case.simulation.api.nodes[name]
            node.roles = ("control-plane",)
            case.simulation.api.changed(node)

    return step


def lacks(*rights: str) -> Step:
    """Take rights in the cluster from fencer; none: give them back."""
    return lambda case: setattr(case.simulation.cluster, "missing", set(rights))


def answers_after(seconds: float) -> Step:
    """Let the API server take so long to list pods; and after that the hypervisor is away."""
    return lambda case: setattr(case, "slow_s", seconds)


def foreseen(reason: Reason, within_s: float = 200.0) -> Step:
    """Watch until this is about to be said in the middle of a pass, and hold what would be done."""

    def step(case: Case) -> None:
        def holds(case: Case) -> bool:
            case.judged = case.agent.survey(case.node).judged[case.node]
            return case.reason is reason

        case.until(holds, within_s, f"about to be {reason}")

    return step


def foreseen_from_afar(reason: Reason, within_s: float = 200.0) -> Step:
    """The same, by lists alone, as each pass begins."""

    def step(case: Case) -> None:
        def holds(case: Case) -> bool:
            scene = case.agent.observer.look()
            observation = case.agent.observer.observation(scene, scene.nodes[case.node])
            case.judged = Judged(observation, decide(observation, case.policy))
            return case.reason is reason

        case.until(holds, within_s, f"about to be {reason}")

    return step


def unsigned(case: Case) -> None:
    """Let the mark be one of an older fencer, which signed nothing."""
    node = case.api_node
    text = node.annotations[annotations.MARK].replace('"schema":2', '"schema":1')
    node.annotations[annotations.MARK] = text
    case.simulation.api.changed(node)

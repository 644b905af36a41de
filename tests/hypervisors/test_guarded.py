"""The guard before adapters of others: what cannot be understood is never taken for an answer."""

import itertools
import logging
import math
import re
import threading
from asyncio import CancelledError
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.contract.deadlines import IN_TIME, TOO_LATE
from fencer.core.model import NEVER_S, Doubt, Doubted, Evidence, GuestRef, PowerState, Proof
from fencer.errors import (
    ClusterUnreachable,
    ConfigError,
    GuestChanged,
    GuestNotFound,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.guarded import Guarded
from fencer.hypervisors.plausible import LONGEST_TEXT, Lack, lacks
from fencer.ports import EndpointInfo, StopSettings

NOW_S = 100.0
GUEST = GuestRef("farm", "web", "6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2", "web", "farm1")
OTHER = GuestRef("farm", "db", "6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae3", "db", "farm1")
OFF = Evidence(
    guest=GUEST,
    power_state=PowerState.STOPPED,
    settled=True,
    incarnation="run 1",
    cold_start=True,
    raw="off",
    source="test",
    observed_at_s=NOW_S,
    witness="farm 17",
)
INFO = EndpointInfo("cells", "1.0", "/srv/farm", can_power=True)
ABSENT = replace(OFF, power_state=PowerState.ABSENT, end_recorded=True, proof=Proof.ABSENCE)
PROTOCOL = "farm: its adapter gave an answer that cannot be understood"


def guarded(**methods):
    """A guard before an adapter with these methods."""
    return Guarded("farm", SimpleNamespace(**methods), lambda: NOW_S)


def raises(error):
    def call(*_args):
        raise error

    return call


class MoreThanEvidence(Evidence):
    """Calls itself gone, whatever it says."""

    gone = True


@dataclass(frozen=True)
class LooksAlike:
    guest: GuestRef = GUEST
    power_state: PowerState = PowerState.STOPPED


WRONG = {
    "nothing": None,
    "a word": "stopped",
    "a mapping": {"power_state": "stopped"},
    "a subclass": MoreThanEvidence(**{name: getattr(OFF, name) for name in Evidence.__dataclass_fields__}),
    "a look-alike": LooksAlike(),
    "a state as a word": replace(OFF, power_state="stopped"),
    "an unknown state": replace(OFF, power_state="powered off"),
    "settled as a number": replace(OFF, settled=1),
    "settled as a word": replace(OFF, settled="no"),
    "conclusive as nothing": replace(OFF, conclusive=None),
    "an incarnation as a number": replace(OFF, incarnation=1),
    "no incarnation of an end": replace(OFF, incarnation=None),
    "an empty incarnation of an end": replace(OFF, incarnation=""),
    "no witness of an end": replace(OFF, witness=""),
    "no date": replace(OFF, observed_at_s=None),
    "a date that is no number": replace(OFF, observed_at_s=math.nan),
    "a number of 5000 digits": replace(OFF, observed_at_s=-(10**5000)),
    "never": replace(OFF, observed_at_s=NEVER_S),
    "a date before all times": replace(OFF, observed_at_s=-(10**400)),
    "a date that is true": replace(OFF, observed_at_s=True),
    "no words": replace(OFF, raw=None),
    "endless words": replace(OFF, raw="x" * 2001),
    "hosts that are no texts": replace(OFF, moved_from=(1,)),
    "hosts in hosts": replace(OFF, moved_from=(("farm2",),)),
    "hosts as a list": replace(OFF, moved_from=["farm2"]),
    "groups as a set": replace(OFF, groups={"tag:fencer"}),
    "the word of a person": replace(OFF, proof=Proof.OPERATOR),
    "the word of a power witness": replace(OFF, proof=Proof.HOST_POWER),
    "the word of an HA stack": replace(OFF, proof=Proof.HA_RECOVERY),
    "a record of the end of a running guest": replace(OFF, power_state=PowerState.RUNNING, end_recorded=True),
    "a silent host that tells": replace(OFF, host_silent=True),
    "a running guest whose memory is elsewhere": replace(OFF, power_state=PowerState.RUNNING, away=True),
    "a guest that is off, and whose memory is elsewhere": replace(OFF, away=True),
    "an absence of a guest that is off": replace(OFF, proof=Proof.ABSENCE),
    "a doubt": replace(OFF, doubt=Doubt(Doubted.SAVED, GUEST, "", "me", "")),
    "another endpoint": replace(OFF, guest=replace(GUEST, endpoint="lab")),
    "no guest": replace(OFF, guest=None),
    "a guest as a word": replace(OFF, guest="web"),
    "a guest with a hypervisor": replace(OFF, guest=replace(GUEST, hypervisor="cells:x")),
    "a UUID in capitals": replace(OFF, guest=replace(GUEST, uuid=GUEST.uuid.upper())),
    "no UUID": replace(OFF, guest=replace(GUEST, uuid="")),
    "no id": replace(OFF, guest=replace(GUEST, id="")),
    "an id that is a number": replace(OFF, guest=replace(GUEST, id=101)),
    "a host that is none": replace(OFF, guest=replace(GUEST, host=b"farm1")),
}
every_wrong_statement = pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))


# -- readings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "right",
    [
        OFF,
        ABSENT,
        replace(OFF, power_state=PowerState.RUNNING, incarnation=None, witness=""),
        replace(OFF, power_state=PowerState.UNKNOWN, host_silent=True, incarnation=None),
        replace(OFF, power_state=PowerState.UNKNOWN, away=True),
        replace(OFF, observed_at_s=NOW_S - 7, conclusive=False, moved_from=("farm2",)),
        replace(OFF, observed_at_s=99, guest=replace(GUEST, host=None, host_uuid=GUEST.uuid)),
    ],
)
def test_what_can_be_is_taken_as_it_is(right):
    guard = guarded(read=lambda _guest: right, sweep=lambda: [right])
    assert guard.read(GUEST) == right
    assert guard.sweep() == [right]


@every_wrong_statement
def test_a_reading_that_cannot_be_is_an_error(wrong):
    with pytest.raises(HypervisorProtocol, match=PROTOCOL):
        guarded(read=lambda _guest: wrong).read(GUEST)


@pytest.mark.parametrize(
    "meant",
    [
        replace(GUEST, uuid=OTHER.uuid),
        replace(GUEST, id="db"),
        OTHER,
    ],
)
def test_a_reading_of_another_guest_is_an_error(meant):
    with pytest.raises(HypervisorProtocol, match="asked for"):
        guarded(read=lambda _guest: OFF).read(meant)


@pytest.mark.parametrize(
    ("said_s", "taken_s"), [(101.0, 100.0), (math.inf, 100.0), (93.0, 93.0), (10**400, 100.0)]
)
def test_evidence_is_no_younger_than_its_call(said_s, taken_s):
    said = replace(OFF, observed_at_s=said_s)
    guard = guarded(read=lambda _guest: said, sweep=lambda: [said])
    assert guard.read(GUEST).observed_at_s == taken_s
    assert [one.observed_at_s for one in guard.sweep()] == [taken_s]


def test_words_for_people_are_made_fit_for_a_line():
    said = replace(OFF, raw="off\nmode=armed", source="\x1b[2J", told="a\tb", stuck="a\rb")
    taken = guarded(read=lambda _guest: said).read(GUEST)
    assert all(text.isprintable() for text in (taken.raw, taken.source, taken.told, taken.stuck))


# -- sweeps -------------------------------------------------------------------------------------------------


NAMED = {name: wrong for name, wrong in WRONG.items() if type(wrong) is Evidence and wrong.guest == GUEST}
NAMELESS = {name: wrong for name, wrong in WRONG.items() if name not in NAMED}


@pytest.mark.parametrize("wrong", NAMED.values(), ids=list(NAMED))
def test_a_wrong_statement_in_a_sweep_blinds_its_own_guest_alone(wrong):
    found = guarded(sweep=lambda: [replace(OFF, guest=OTHER), wrong]).sweep()
    assert [(one.guest, one.power_state) for one in found] == [
        (OTHER, PowerState.STOPPED),
        (GUEST, PowerState.UNKNOWN),
    ]
    assert "cannot be understood" in found[1].raw


@pytest.mark.parametrize("wrong", NAMELESS.values(), ids=list(NAMELESS))
def test_a_statement_about_nobody_blinds_the_sweep(wrong):
    with pytest.raises(HypervisorProtocol, match=PROTOCOL):
        guarded(sweep=lambda: [replace(OFF, guest=OTHER), wrong]).sweep()


def test_a_guest_that_is_off_nobody_knows_where_is_off_only_if_its_endpoint_is_one_host():
    """Managers name no host of a guest that was halted; it may run on another by now."""
    nowhere = replace(OFF, guest=replace(GUEST, host=None))
    adapter = SimpleNamespace(read=lambda _guest: nowhere)
    with pytest.raises(HypervisorProtocol, match="no host"):
        Guarded("farm", adapter, lambda: NOW_S).read(GUEST)
    assert Guarded("farm", adapter, lambda: NOW_S, one_host=True).read(GUEST) == nowhere


LACKING = {
    Lack.HOST: replace(OFF, guest=replace(GUEST, host=None)),
    Lack.RUN: replace(OFF, incarnation=None),
    Lack.WITNESS: replace(OFF, witness=""),
}


@pytest.mark.parametrize("lack", Lack)
def test_an_off_that_lacks_only_one_thing_is_no_statement(lack):
    assert lacks(LACKING[lack], one_host=False) == {lack}
    with pytest.raises(HypervisorProtocol, match=re.escape(lack)):
        guarded(read=lambda _guest: LACKING[lack]).read(GUEST)


@pytest.mark.parametrize("second", [OFF, replace(OFF, power_state=PowerState.RUNNING)])
def test_who_is_told_of_twice_is_unknown(second):
    (told,) = guarded(sweep=lambda: [OFF, second]).sweep()
    assert (told.guest, told.power_state, told.settled) == (GUEST, PowerState.UNKNOWN, False)


@pytest.mark.parametrize("answer", [None, 7, OFF, raises(ValueError("x"))])
def test_a_sweep_that_is_no_list_is_an_error(answer):
    with pytest.raises(HypervisorProtocol, match=PROTOCOL):
        guarded(sweep=answer if callable(answer) else lambda: answer).sweep()


def test_a_list_that_breaks_amid_is_an_error():
    def half():
        yield OFF
        raise KeyError("state")

    with pytest.raises(HypervisorProtocol, match=r"cannot be understood \(sweep\): KeyError: 'state'"):
        guarded(sweep=half).sweep()


class HostileType(type):
    """A class of it is any other, as a comparison of types tells; and none that could be looked up."""

    def __eq__(cls, other):
        return True

    def __hash__(cls):
        raise RuntimeError("hashed")


class EqualsAnything(metaclass=HostileType):
    """Of no type that is taken."""


class NoWord(str):
    """A text that cannot be shown."""

    __slots__ = ()

    def __repr__(self):
        raise RuntimeError("shown")

    __str__ = __repr__
    __len__ = __repr__


ODD = {
    "equal to anything": EqualsAnything(),
    "no word": NoWord("x"),
    "no words": (NoWord("x"),),
    "a list": ["x"],
    "a number of 5000 digits": -(10**5000),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("name", ["power_state", "raw", "moved_from", "cold_start", "observed_at_s", "doubt"])
def test_a_value_that_cannot_even_be_shown_blinds_its_own_guest_alone(name, odd):
    said = replace(OFF, **{name: odd})
    found = guarded(sweep=lambda: [replace(OFF, guest=OTHER), said]).sweep()
    assert [(one.guest, one.power_state) for one in found] == [
        (OTHER, PowerState.STOPPED),
        (GUEST, PowerState.UNKNOWN),
    ]


@pytest.mark.parametrize("told", [OFF, None])
def test_a_sweep_that_never_ends_is_an_error(told):
    with pytest.raises(HypervisorProtocol, match=r"\(sweep\): it reports more than .* guests, and may never"):
        guarded(sweep=lambda: itertools.repeat(told)).sweep()


class Hostile:
    """Whatever is asked of it fails."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __hash__(self):
        raise RuntimeError("hashed")

    def __repr__(self):
        return "Hostile()"


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([*PowerState, *Proof]),
    st.lists(st.text(max_size=3), max_size=2),
    st.tuples(st.text(max_size=3) | st.integers()),
    st.frozensets(st.text(max_size=3) | st.integers(), max_size=2),
    st.builds(Hostile),
)
GUESTS = st.fixed_dictionaries({}, optional=dict.fromkeys(GuestRef.__dataclass_fields__, ANYTHING))
STATEMENTS = st.fixed_dictionaries({}, optional=dict.fromkeys(Evidence.__dataclass_fields__, ANYTHING))


@given(GUESTS, STATEMENTS)
def test_whatever_is_said_an_adapter_is_understood_or_nothing_is_known(guest, statement):
    said = replace(OFF, **{"guest": replace(GUEST, **guest), **statement})
    guard = guarded(read=lambda _guest: said, sweep=lambda: [said])
    for ask in (lambda: [guard.read(GUEST)], guard.sweep):
        try:
            (taken,) = ask()
        except HypervisorProtocol as error:
            assert str(error).isprintable()  # noqa: PT017 - both outcomes are right
            continue
        assert taken.guest.endpoint == "farm"
        assert taken.observed_at_s <= NOW_S
        assert not taken.gone or (
            taken.incarnation and taken.witness and taken.proof in {Proof.POWER, Proof.ABSENCE}
        )
        assert taken.power_state is PowerState.UNKNOWN or taken.power_state is said.power_state


# -- what a sweep repeats -----------------------------------------------------------------------------------


def afresh(text):
    """An equal text that is another object, as one that was parsed again."""
    return "".join(list(text))


KNOWN = replace(OFF, moved_from=("farm2", "farm3"), groups=frozenset({"pool:k8s", "tag:fencer"}))
AGAIN = replace(
    KNOWN,
    guest=replace(GUEST, id=afresh(GUEST.id), uuid=afresh(GUEST.uuid), host=afresh("farm1")),
    raw=afresh(KNOWN.raw),
    moved_from=(afresh("farm2"), afresh("farm3")),
    groups=frozenset({afresh("tag:fencer"), afresh("pool:k8s")}),
)


def outcome(guard):
    try:
        return guard.sweep()
    except HypervisorProtocol as error:
        return str(error)


def after(*said):
    """What a guard makes of the last of these sweeps, each of one statement."""
    sweeps = iter([[one] for one in said])
    guard = guarded(sweep=lambda: next(sweeps))
    return [outcome(guard) for _ in said][-1]


def test_what_was_checked_is_not_checked_again():
    """Seen by its words: those of the first time are kept. Whatever is another guest's is checked."""
    told = [KNOWN]
    guard = guarded(sweep=lambda: told)
    (first,) = guard.sweep()
    told[:] = [replace(AGAIN, guest=OTHER), AGAIN]
    other, again = guard.sweep()
    assert again == first
    assert again.raw is first.raw
    assert other.raw is not first.raw
    told.clear()
    guard.sweep()
    told.append(AGAIN)
    assert guard.sweep()[0].raw is not first.raw  # guests that are gone are not kept


@pytest.mark.parametrize("wrong", [*WRONG.values(), KNOWN, AGAIN], ids=[*WRONG, "as it was", "again"])
def test_what_was_right_before_makes_no_wrong_statement_right(wrong):
    assert after(OFF, wrong) == after(KNOWN, wrong) == after(wrong)


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("name", Evidence.__dataclass_fields__)
def test_nothing_odd_passes_for_what_was_checked(name, odd):
    assert after(KNOWN, replace(AGAIN, **{name: odd})) == after(replace(AGAIN, **{name: odd}))


@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("name", GuestRef.__dataclass_fields__)
def test_no_odd_guest_passes_for_one_that_was_checked(name, odd):
    wrong = replace(AGAIN, guest=replace(GUEST, **{name: odd}))
    assert after(KNOWN, wrong) == after(wrong)
    assert "about nobody that could be named" in after(wrong)


class Same(str):
    """Equal to any text, and found where the one is that it was made of."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "change",
    [
        {"raw": Same("off")},
        {"incarnation": Same("run 1")},
        {"moved_from": (Same("farm2"), Same("farm3"))},
        {"moved_from": ["farm2", "farm3"]},
        {"groups": frozenset({Same("pool:k8s"), "tag:fencer"})},
        {"groups": {"pool:k8s", "tag:fencer"}},
        {"settled": 1},
        {"cold_start": 1.0},
        {"guest": SimpleNamespace(**asdict(GUEST))},
        {"guest": Hostile()},
        {"guest": replace(GUEST, id=Same("web"))},
        {"guest": replace(GUEST, uuid=Same(GUEST.uuid))},
        {"guest": replace(GUEST, host=Same("farm1"))},
        {"power_state": str.__new__(PowerState, "stopped")},
        {"observed_at_s": True},
        {"observed_at_s": 93},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_only_equals_what_was_checked_is_checked(change):
    said = replace(AGAIN, **change)
    assert after(KNOWN, said) == after(said)
    assert after(KNOWN, AGAIN, said) == after(said)


def change(frozen, name, value):
    """What no adapter should do, and any can."""
    object.__setattr__(frozen, name, value)


def test_an_adapter_that_changes_what_it_said_is_checked_again():
    said = replace(KNOWN, guest=replace(GUEST))
    told = [said]
    guard = guarded(sweep=lambda: told)
    guard.sweep()
    change(said, "power_state", "stopped")
    assert [one.power_state for one in guard.sweep()] == [PowerState.UNKNOWN]
    change(said, "power_state", PowerState.STOPPED)
    change(said.guest, "uuid", "")
    with pytest.raises(HypervisorProtocol, match="about nobody"):
        guard.sweep()
    told[:] = [AGAIN]
    assert guard.sweep() == [KNOWN]


@pytest.mark.parametrize(
    ("said_s", "taken_s"), [(NOW_S + 1, NOW_S), (math.inf, NOW_S), (93.0, 93.0), (93, 93), (-1e12, -1e12)]
)
def test_what_is_repeated_has_a_date_of_its_own_no_younger_than_its_call(said_s, taken_s):
    (taken,) = after(KNOWN, replace(AGAIN, observed_at_s=said_s))
    assert taken == replace(KNOWN, observed_at_s=taken_s)


@pytest.mark.parametrize("said_s", [math.nan, NEVER_S, -2e12, None, "93"])
def test_what_is_repeated_without_a_date_that_can_be_is_unknown(said_s):
    (taken,) = after(KNOWN, replace(AGAIN, observed_at_s=said_s))
    assert taken.power_state is PowerState.UNKNOWN


def test_words_stay_fit_for_a_line_when_they_are_repeated():
    (taken,) = after(replace(KNOWN, raw="off\nmode=armed"), replace(AGAIN, raw=afresh("off\nmode=armed")))
    assert taken.raw == "off\\nmode=armed"


@pytest.mark.parametrize("second", [AGAIN, replace(AGAIN, power_state=PowerState.RUNNING)])
def test_who_is_told_of_twice_is_unknown_whatever_is_repeated(second):
    sweeps = iter([[KNOWN], [KNOWN, second]])
    guard = guarded(sweep=lambda: next(sweeps))
    guard.sweep()
    assert [one.power_state for one in guard.sweep()] == [PowerState.UNKNOWN]


@given(GUESTS, STATEMENTS)
def test_whatever_was_said_before_the_same_is_made_of_what_is_said(guest, statement):
    said = replace(AGAIN, **{"guest": replace(AGAIN.guest, **guest), **statement})
    assert after(KNOWN, said) == after(said)


# -- errors -------------------------------------------------------------------------------------------------


class Timeout(HypervisorUnreachable):
    """A class of the adapter's own."""


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (HypervisorUnreachable("no route"), HypervisorUnreachable),
        (HypervisorDenied("401"), HypervisorDenied),
        (HypervisorProtocol("500"), HypervisorProtocol),
        (GuestNotFound("no such guest"), GuestNotFound),
        (GuestChanged("another run"), GuestChanged),
        (Timeout("10 s"), HypervisorUnreachable),
    ],
)
def test_the_ports_errors_pass_and_name_the_endpoint(raised, kind):
    with pytest.raises(kind) as caught:
        guarded(read=raises(raised)).read(GUEST)
    assert type(caught.value) is kind
    assert str(caught.value) == f"farm: {raised}"


@pytest.mark.parametrize(
    "raised",
    [
        OSError("gone"),
        KeyError("uuid"),
        NotImplementedError(),
        AttributeError("x"),
        SystemExit(1),
        CancelledError(),
        ConfigError("x"),
        ClusterUnreachable("x"),
        RecursionError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("method", ["describe", "sweep", "read", "stop_settings", "stop"])
def test_any_other_error_is_an_answer_that_cannot_be_understood(raised, method):
    guard = guarded(**{method: raises(raised)})
    arguments = {"read": (GUEST,), "stop_settings": (GUEST,), "stop": (GUEST, None, IN_TIME)}.get(method, ())
    with pytest.raises(HypervisorProtocol, match=PROTOCOL) as caught:
        getattr(guard, method)(*arguments)
    assert re.search(
        rf": {type(raised).__name__}: .*\(hypervisors/test_guarded\.py:\d+\)$", str(caught.value)
    )
    assert str(caught.value).isprintable()


class Speechless(HypervisorUnreachable):
    def __str__(self):
        raise RuntimeError("said")


class SpeechlessAndForeign(Exception):
    def __str__(self):
        raise SystemExit(1)


class Measureless(Exception):
    class Text(str):
        __slots__ = ()

        def __len__(self):
            raise RuntimeError("no length")

    def __str__(self):
        return self.Text("said")


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (Measureless(), HypervisorProtocol, "Measureless: said"),
        (Speechless(), HypervisorUnreachable, "farm: (what it says cannot be told: RuntimeError)"),
        (
            SpeechlessAndForeign(),
            HypervisorProtocol,
            "SpeechlessAndForeign: (what it says cannot be told: SystemExit)",
        ),
        (HypervisorDenied("x" * 50_000_000), HypervisorDenied, "x… (50000000 characters)"),
        (ValueError("x" * 50_000_000), HypervisorProtocol, "x… (50000000 characters)"),
    ],
    ids=[
        "another whose words have no length",
        "ours that cannot speak",
        "another that cannot",
        "ours without an end",
        "another without an end",
    ],
)
def test_an_error_that_cannot_be_told_or_never_ends_is_one_all_the_same(raised, kind, said):
    with pytest.raises(kind) as caught:
        guarded(read=raises(raised)).read(GUEST)
    assert said in str(caught.value)
    assert len(str(caught.value)) < LONGEST_TEXT + 200


# -- the endpoint -------------------------------------------------------------------------------------------


def test_it_bears_the_name_of_the_configuration():
    assert guarded(endpoint="otherwise").endpoint == "farm"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {"kind": "cells"},
        replace(INFO, version=None),
        replace(INFO, can_power="yes"),
        replace(INFO, problems="none"),
        replace(INFO, remarks=(None,)),
        replace(INFO, power_only={"web"}),
    ],
)
def test_a_description_that_cannot_be_is_an_error(wrong):
    assert guarded(describe=lambda: INFO).describe() == INFO
    with pytest.raises(HypervisorProtocol, match=PROTOCOL):
        guarded(describe=lambda: wrong).describe()


@pytest.mark.parametrize(
    "wrong",
    [
        30.0,
        StopSettings(math.nan, "conf"),
        StopSettings(math.inf, "conf"),
        StopSettings(10**400, "conf"),
        StopSettings(-1, "conf"),
        StopSettings("30", "conf"),
        StopSettings(30, None),
    ],
)
def test_stop_settings_that_cannot_be_are_an_error(wrong):
    assert guarded(stop_settings=lambda _guest: None).stop_settings(GUEST) is None
    with pytest.raises(HypervisorProtocol, match=PROTOCOL):
        guarded(stop_settings=lambda _guest: wrong).stop_settings(GUEST)


# -- orders -------------------------------------------------------------------------------------------------

ORDERS = ("shutdown", "stop", "discard", "start")


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_handed_on_as_it_was_given(name):
    given = []
    guard = guarded(**{name: lambda *order: given.append(order)})
    getattr(guard, name)(GUEST, "run 1", IN_TIME)
    assert given == [(GUEST, "run 1", IN_TIME)]


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_that_is_too_late_never_reaches_the_adapter(name):
    given = []
    guard = guarded(**{name: lambda *order: given.append(order)})
    with pytest.raises(HypervisorUnreachable, match="too late"):
        getattr(guard, name)(GUEST, "run 1", TOO_LATE)
    assert given == []


# -- what nothing depends on --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["subscribe", "nudge", "attend", "close"])
@pytest.mark.parametrize(
    "error", [NotImplementedError("no events"), SystemExit(1), HypervisorUnreachable("x")]
)
def test_what_fails_there_is_said_in_the_log_alone(name, error, caplog):
    guard = guarded(**{name: raises(error)})
    with caplog.at_level(logging.WARNING):
        given = {"subscribe": (lambda: None,), "nudge": ("web",), "attend": ((GUEST,),), "close": ()}
        getattr(guard, name)(*given[name])
    assert f"endpoint=farm the adapter's {name} failed: {type(error).__name__}" in caplog.text


def test_an_adapter_is_told_of_its_own_nodes_and_only_when_they_are_others():
    told = []
    guard = guarded(attend=told.append)
    elsewhere = replace(GUEST, endpoint="barn")
    for guests in ([], [elsewhere], [GUEST, elsewhere], [elsewhere, GUEST, GUEST], (), ()):
        guard.attend(guests)
    assert told == [{GUEST}, frozenset()]


def test_a_close_that_never_returns_is_left_behind():
    released = threading.Event()
    try:
        guarded(close=released.wait).close()
        assert not released.is_set()
    finally:
        released.set()


def test_an_adapter_that_wakes_in_a_loop_wakes_once_for_now():
    wakes = []

    def subscribe(wake):
        for _ in range(1000):
            wake()

    guarded(subscribe=subscribe).subscribe(lambda: wakes.append("woken"))
    assert wakes == ["woken"]


def test_a_subscription_wakes():
    wakes = []
    guarded(subscribe=lambda wake: wake()).subscribe(lambda: wakes.append("woken"))
    assert wakes == ["woken"]

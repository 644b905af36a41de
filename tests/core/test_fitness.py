"""Of use as a holder is who looks, is answered, and can do what is due."""

import pytest

from fencer.core.fitness import FUTILE, Fitness, futile_at
from fencer.core.model import Decision, Reason, Verdict
from tests.core.build import GUEST, OTHER

NEVER, NOBODY = float("-inf"), frozenset()
LAB, HOME = "lab", "home"
BOTH = (LAB, HOME)


def decision(reason, guest=GUEST):
    return Decision(Verdict.WAIT, reason, guest=guest)


@pytest.mark.parametrize("reason", Reason)
def test_in_vain_is_an_order_that_may_not_be_given_or_has_failed(reason):
    wanted = {*(Reason.NO_POWER_RIGHTS, Reason.POWER_UNAPPROVED, Reason.STOP_FAILED, Reason.DISCARD_FAILED)}
    assert futile_at([decision(reason)]) == ({LAB} if reason in wanted else NOBODY)


def test_it_is_so_at_the_endpoint_of_that_guest_and_nowhere_where_none_is_known():
    vain = min(FUTILE)
    assert futile_at([decision(vain), decision(vain), decision(vain, OTHER)]) == {LAB, HOME}
    assert futile_at([decision(vain, None)]) == NOBODY
    assert futile_at([]) == NOBODY


def seen(*passes, began_s=0.0):
    """Fitness after passes: each when it ended, who was silent, and where it was in vain."""
    fitness = Fitness(began_s)
    for now_s, silent, futile in passes:
        fitness = fitness.after(BOTH, silent, frozenset(futile), now_s)
    return fitness


EDGE, OVER = 29.9, 30.0


@pytest.mark.parametrize(
    ("fitness", "endpoints", "since_s"),
    [
        (seen(), (LAB,), 0.0),
        (seen(began_s=50.0), (LAB,), 50.0),
        (seen((10.0, (), ())), (LAB,), 10.0),
        (seen((10.0, (), ()), (20.0, (), ())), (LAB,), 20.0),
        (seen((10.0, (LAB,), ())), (LAB,), 10.0),
        (seen((10.0, (LAB,), ()), (20.0, (LAB,), ())), (LAB,), 10.0),
        (seen((10.0, (), ()), (20.0, (LAB,), ())), (HOME,), 20.0),
        (seen((10.0, (), ()), (20.0, (LAB,), ()), (30.0, (), ())), (LAB,), 30.0),
        (seen((10.0, (), (LAB,))), (LAB,), 0.0),
        (seen((10.0, (), ()), (20.0, (), (LAB,))), (LAB,), 10.0),
        (seen((10.0, (), (LAB,)), (20.0, (), (LAB,)), (30.0, (), ())), (LAB,), 30.0),
        (seen((10.0, (), ()), (20.0, (LAB,), ())), BOTH, 20.0),
    ],
    ids=[
        "before its first pass: since it began",
        "likewise, later",
        "since it was answered",
        "in the last pass",
        "silent in its first pass: as if answered",
        "silent again: since then",
        "another one is silent",
        "answered again",
        "in vain from the first: since it began",
        "in vain: since before",
        "no longer in vain",
        "one hypervisor by two names: one is enough",
    ],
)
def test_who_could_have_given_no_order_for_long_is_of_no_use(fitness, endpoints, since_s):
    assert fitness.is_fit(endpoints, NEVER, since_s)
    assert fitness.is_fit(endpoints, NEVER, since_s + EDGE)
    assert not fitness.is_fit(endpoints, NEVER, since_s + OVER)


def test_a_lease_of_no_endpoint_is_no_reason_to_leave_it():
    """Its hypervisor has just got another identity."""
    assert seen().is_fit((), NEVER, 1e6)


def test_only_who_could_not_do_what_is_due_rests():
    fitness = seen((10.0, (HOME,), (LAB,)))
    assert fitness.rest((LAB,), 100.0) == 110.0
    assert fitness.rest(BOTH, 100.0) == 110.0
    assert fitness.rest((HOME,), 100.0) is None
    assert seen((10.0, (), (LAB,)), (20.0, (), ())).rest((LAB,), 100.0) is None


def test_who_rests_is_not_fit_and_then_tries_for_as_long_again():
    """What it could not do before may be mended now."""
    fitness, until_s = seen((10.0, (), ())), 100.0
    assert not fitness.is_fit((LAB,), until_s, until_s - 0.1)
    assert fitness.is_fit((LAB,), until_s, until_s)
    assert fitness.is_fit((LAB,), until_s, until_s + EDGE)
    assert not fitness.is_fit((LAB,), until_s, until_s + OVER)


def test_who_rests_is_not_fit_even_if_it_was_answered_a_moment_ago():
    assert not seen((99.0, (), ())).is_fit((LAB,), 100.0, 99.5)

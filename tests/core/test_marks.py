"""How far all leases had got, and when: it dates a lease that nobody has read for long."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fencer.core.fence import heard_last
from fencer.core.fleet import heard, may_be_alive, survey
from fencer.core.history import Mark, aged, deafened, marked, track, unasked
from fencer.core.policy import Mode, Policy
from tests.core.build import ARMED, node, observation

MARKS = (Mark(100, 9.9, 10.0), Mark(200, 19.9, 20.0), Mark(300, 29.9, 30.0))


def read(version, marks=MARKS, now_s=40.0, read_s=0.0):
    """A lease that was read once long ago, and now once more, renewed."""
    before = track(None, "t1", ready=True, now_s=read_s)
    return track(before, "t2", ready=True, now_s=now_s, version=version, marks=marks)


def test_a_lease_was_written_before_the_first_mark_that_is_as_far_as_it():
    assert [read(version).changed_at_s for version in (99, 100, 101, 300)] == [10.0, 10.0, 20.0, 30.0]


def test_and_after_the_mark_before_that():
    assert [round(read(version).within_s, 3) for version in (100, 101, 300)] == [10.0, 10.1, 10.1]


def test_one_that_is_further_than_every_mark_is_as_old_as_the_last_of_them_at_most():
    lease = read(301)
    assert (lease.changed_at_s, round(lease.within_s, 3)) == (40.0, 10.1)


def test_without_versions_or_marks_it_was_written_since_it_was_last_read():
    for lease in (read(0), read(250, marks=())):
        assert (lease.changed_at_s, lease.within_s) == (40.0, 40.0)


def test_a_mark_from_before_the_last_read_dates_nothing():
    lease = read(150, read_s=25.0)
    assert (lease.changed_at_s, lease.within_s) == (40.0, 15.0)


def test_marks_that_go_back_are_forgotten_because_etcd_was_restored():
    back = Mark(50, 39.9, 40.0)
    assert marked(MARKS, back) == (back,)
    assert marked(MARKS, replace(back, version=0)) == MARKS
    assert marked(MARKS, replace(back, version=300)) == (*MARKS, replace(back, version=300))


def test_marks_that_go_back_a_little_are_forgotten_too():
    assert marked(MARKS, Mark(150, 30.0, 40.0)) == (Mark(150, 30.0, 40.0),)


def test_an_answer_that_was_asked_for_before_the_last_mark_came_changes_nothing():
    assert marked(MARKS, Mark(150, 29.9, 40.0)) == MARKS
    assert marked(MARKS, Mark(150, 25.0, 40.0)) == MARKS


def test_time_that_is_taken_out_of_a_silence_once_is_not_taken_out_again():
    mark = replace(MARKS[0], deaf_s=20.0)
    assert deafened((mark,), deaf_s=25.0, now_s=35.0, keep_s=10.0) == (mark,)
    assert deafened((mark,), deaf_s=25.0, now_s=45.0, keep_s=10.0) == (replace(mark, deaf_s=25.0),)


def test_time_in_which_no_lease_could_be_read_does_not_age_one_that_is_newer_than_every_mark():
    before = track(None, "t1", ready=True, now_s=0.0)
    seen = track(before, "t2", ready=True, now_s=40.0, version=301, unseen_s=7.0, marks=MARKS)
    assert seen.deaf_s == 0.0


def test_it_does_where_no_mark_dates_the_lease():
    before = track(None, "t1", ready=True, now_s=0.0)
    for version, marks in ((0, MARKS), (301, ())):
        seen = track(before, "t2", ready=True, now_s=40.0, version=version, unseen_s=7.0, marks=marks)
        assert (seen.changed_at_s, seen.deaf_s) == (40.0, 7.0)


def test_a_lease_that_was_last_read_when_a_mark_was_made_is_dated_by_that_mark():
    lease = read(150, read_s=20.0)
    assert (lease.changed_at_s, lease.within_s) == (20.0, 0.0)


def test_a_node_whose_lease_was_not_read_keeps_its_renewals():
    """Else its kubelet would seem to be heard again and again once it is read."""
    lease = read(300)
    seen = unasked(node(lease_renewals=0), lease)
    assert (seen.asked, seen.lease_renewals) == (False, lease.renewals)


def test_old_marks_are_dropped():
    now_s = 20.0 + 600.0
    assert [mark.version for mark in marked(MARKS, Mark(900, now_s, now_s))] == [200, 300, 900]


def test_while_nobody_was_heard_no_silence_counts_for_a_lease_that_is_read_afterwards_either():
    marks = deafened(MARKS, deaf_s=25.0, now_s=35.0, keep_s=10.0)
    lease = read(150, marks=marks, now_s=35.0)
    seen = aged(node(), lease, 35.0)
    assert (seen.lease_age_s, seen.heard_s) == (10.0, 15.0)


def test_what_was_written_while_nobody_could_look_may_be_as_old_as_that():
    marks = (*MARKS, Mark(400, 99.9, 100.0, unseen_s=65.0))
    seen = aged(node(), read(400, marks=marks, now_s=100.0), 100.0)
    assert (seen.lease_age_s, seen.heard_s) == (0.0, 65.0)


def seconds(least, most):
    """Draw a time in whole eighths of a second: sums and differences of these are exact."""
    return st.integers(8 * least, 8 * most).map(lambda eighths: eighths / 8)


@given(
    st.lists(seconds(0, 30), min_size=1, max_size=30),
    st.lists(seconds(0, 30), min_size=1, max_size=30),
    seconds(0, 400),
)
def test_no_lease_seems_older_than_it_is_nor_younger_than_by_one_look(renewals, looks, asked_s):
    """Whenever it is read: only a look that came between two renewals makes a difference."""
    written, marks, at_s = [(0.0, 1)], (), 0.0
    for number, rest_s in enumerate(renewals, 2):
        at_s += rest_s
        written.append((at_s, number))
    at_s = 0.0
    for rest_s in looks:
        at_s += rest_s
        if at_s <= asked_s:
            marks = marked(marks, Mark(max(v for w, v in written if w <= at_s), at_s, at_s))
    true_s, version = max((w, v) for w, v in written if w <= asked_s)
    before = track(None, "other", ready=True, now_s=0.0, version=0)
    lease = track(before, "t", ready=True, now_s=asked_s, version=version, marks=marks)
    assert lease.changed_at_s >= true_s
    assert lease.changed_at_s - lease.within_s <= true_s
    later = [mark.at_s for mark in marks if mark.at_s >= true_s]
    assert lease.changed_at_s == min(later, default=asked_s)


def test_a_node_whose_lease_nobody_read_is_healthy_as_long_as_it_is_ready_but_no_voice():
    policy = Policy(mode=Mode.OBSERVE)
    lease = track(None, "t1", ready=True, now_s=0.0)
    ready = unasked(node(ready=True, lease_age_s=None), lease)
    assert heard(ready, policy)
    assert not heard(replace(ready, ready=None), policy)
    assert may_be_alive(replace(ready, ready=None), policy)  # nobody knows
    assert heard_last(observation(node=ready)) == "Ready=True; its lease was not read: its guest runs"
    voice = replace(ready, name="k8s-9", uid="9", asked=True, lease_age_s=1.0)

    def silent(*nodes):
        return survey(nodes, (), ARMED, "", None, None).silent

    assert silent(ready, ready) == 2
    assert silent(ready, voice) == 0
    assert silent(ready, voice, replace(voice, ready=None)) == 1

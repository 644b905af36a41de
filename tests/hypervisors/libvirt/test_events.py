"""What the events and readings of one subscription prove, and what they do not."""

import pytest

from fencer.core.model import PowerState
from fencer.hypervisors.libvirt.events import Chronicle, Left
from fencer.hypervisors.libvirt.parse import Saved, read_power

A, B = "aaaa", "bbbb"
OFF = -1
UNDEFINED, STARTED, SUSPENDED, RESUMED, STOPPED = 1, 2, 3, 4, 5


@pytest.fixture
def chronicle():
    return Chronicle(epoch="7")


def read(chronicle, uuid, state, reason, *, domain_id=OFF, image=False, moment=None):
    moment = chronicle.moment() if moment is None else moment
    chronicle.read(uuid, domain_id, read_power(state, reason, has_saved_image=image), moment)


def boot(chronicle, uuid, domain_id):
    chronicle.heard(uuid, domain_id, RESUMED, 0)  # libvirt sends them in this order
    chronicle.heard(uuid, domain_id, STARTED, 0)


def off_incarnation(chronicle, uuid):
    return chronicle.incarnation(uuid, OFF, chronicle.moment())


# -- ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("detail", "word"), [(0, "shut down"), (1, "destroyed"), (2, "crashed"), (5, "failed")]
)
def test_a_stopped_event_records_the_end(chronicle, detail, word):
    chronicle.heard(A, 3, STOPPED, detail)
    assert chronicle.end_of(A) == word


@pytest.mark.parametrize("detail", [3, 4, 6, 7, 99, -1], ids=str)
def test_migrated_saved_reverted_and_unheard_of_are_no_ends(chronicle, detail):
    chronicle.heard(A, 3, STOPPED, detail)
    assert chronicle.end_of(A) is None


def test_a_guest_migrated_away_after_an_earlier_end_has_none(chronicle):
    chronicle.heard(A, 3, STOPPED, 1)
    chronicle.heard(A, 4, STOPPED, 3)
    assert chronicle.end_of(A) is None


def test_a_stopped_reading_records_the_end(chronicle):
    read(chronicle, A, 5, 1)
    assert chronicle.end_of(A) == "read as shut off"


@pytest.mark.parametrize(
    ("state", "reason", "image"),
    [(1, 1, False), (3, 1, False), (4, 0, False), (5, 4, False), (5, 5, False), (5, 0, True)],
)
def test_any_other_reading_takes_the_record_away(chronicle, state, reason, image):
    read(chronicle, A, 5, 1)
    read(chronicle, A, state, reason, image=image)
    assert chronicle.end_of(A) is None


@pytest.mark.parametrize("event", [STARTED, RESUMED])
def test_a_start_takes_the_record_away(chronicle, event):
    read(chronicle, A, 5, 1)
    chronicle.heard(A, 4, event, 0)
    assert chronicle.end_of(A) is None


def test_an_off_answer_that_is_older_than_a_start_records_nothing(chronicle):
    """The answer of a call was overtaken by the events of a start."""
    moment = chronicle.moment()
    boot(chronicle, A, 4)
    read(chronicle, A, 5, 1, moment=moment)
    assert chronicle.end_of(A) is None


def test_a_running_answer_that_is_older_than_a_stop_takes_no_record_away(chronicle):
    """An event comes by another thread than an answer: the answer from before may be taken in after it."""
    boot(chronicle, A, 3)
    began = chronicle.moment()
    chronicle.heard(A, 3, STOPPED, 1)
    read(chronicle, A, 1, 1, domain_id=3, moment=began)
    assert chronicle.end_of(A) == "destroyed"
    read(chronicle, A, 1, 1, domain_id=4)
    assert chronicle.end_of(A) is None


def test_losing_the_definition_is_neither_an_end_nor_a_start(chronicle):
    chronicle.heard(A, 3, UNDEFINED, 0)
    assert chronicle.end_of(A) is None
    read(chronicle, B, 5, 1)
    chronicle.heard(B, OFF, UNDEFINED, 0)
    assert chronicle.end_of(B) == "read as shut off"


def test_the_end_of_one_guest_is_not_another_ones(chronicle):
    chronicle.heard(A, 3, STOPPED, 1)
    assert chronicle.end_of(B) is None


# -- incarnations -------------------------------------------------------------------------------------------


def test_a_run_is_named_by_its_domain_id(chronicle):
    assert chronicle.incarnation(A, 3, chronicle.moment()) == Chronicle(epoch="8").incarnation(A, 3, 0)
    assert chronicle.incarnation(A, 3, 0) != chronicle.incarnation(A, 4, 0)


def test_a_start_changes_the_incarnation_of_a_guest_that_is_off(chronicle):
    before = off_incarnation(chronicle, A)
    boot(chronicle, A, 4)
    chronicle.heard(A, 4, STOPPED, 1)
    assert off_incarnation(chronicle, A) != before


def test_starts_of_others_do_not(chronicle):
    before = off_incarnation(chronicle, A)
    boot(chronicle, B, 4)
    assert off_incarnation(chronicle, A) == before


def test_an_off_answer_overtaken_by_a_start_differs_from_what_comes_after(chronicle):
    moment = chronicle.moment()
    boot(chronicle, A, 4)
    overtaken = chronicle.incarnation(A, OFF, moment)
    chronicle.heard(A, 4, STOPPED, 1)
    assert off_incarnation(chronicle, A) != overtaken


def test_two_subscriptions_have_different_incarnations_of_what_is_off(chronicle):
    assert off_incarnation(chronicle, A) != off_incarnation(Chronicle(epoch="8"), A)


# -- old memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("event", "detail"), [(STARTED, 2), (STARTED, 3), (RESUMED, 2)])
def test_a_restore_is_remembered_for_its_run(chronicle, event, detail):
    chronicle.heard(A, 5, event, detail)
    assert chronicle.began_with_old_memory(A, 5)
    assert not chronicle.began_with_old_memory(A, 6)
    assert not chronicle.began_with_old_memory(A, OFF)


def test_a_restore_that_was_only_read_is_remembered_too(chronicle):
    read(chronicle, A, 1, 3, domain_id=5)
    read(chronicle, A, 1, 5, domain_id=5)
    assert chronicle.began_with_old_memory(A, 5)


def test_a_boot_is_no_restore(chronicle):
    boot(chronicle, A, 5)
    read(chronicle, A, 1, 1, domain_id=5)
    assert not chronicle.began_with_old_memory(A, 5)


# -- saved memory that is thrown away ------------------------------------------------------------------------


def judged(chronicle, state, reason, *, image, moment=None):
    moment = chronicle.moment() if moment is None else moment
    return chronicle.read(A, OFF, read_power(state, reason, has_saved_image=image), moment).power_state


def test_a_guest_whose_managed_image_was_seen_and_is_gone_is_off(chronicle):
    """Libvirt goes on saying "saved" then, until it restarts."""
    chronicle.heard(A, 3, STOPPED, 4)
    assert judged(chronicle, 5, 5, image=True) is PowerState.SAVED
    assert judged(chronicle, 5, 5, image=False) is PowerState.STOPPED
    assert chronicle.end_of(A) == "read as shut off"


def test_of_a_guest_that_was_never_seen_with_an_image_it_is_unknown_where_its_memory_is(chronicle):
    assert judged(chronicle, 5, 5, image=False) is PowerState.UNKNOWN
    assert judged(chronicle, 5, 5, image=False) is PowerState.UNKNOWN


def test_an_image_of_an_earlier_end_says_nothing_of_what_was_saved_since(chronicle):
    judged(chronicle, 5, 5, image=True)
    boot(chronicle, A, 4)
    chronicle.heard(A, 4, STOPPED, 4)
    assert judged(chronicle, 5, 5, image=False) is PowerState.UNKNOWN


def test_an_answer_that_saw_the_image_before_a_start_says_nothing_of_what_was_saved_since(chronicle):
    moment = chronicle.moment()
    boot(chronicle, A, 4)
    chronicle.heard(A, 4, STOPPED, 4)
    assert judged(chronicle, 5, 5, image=True, moment=moment) is PowerState.SAVED
    assert judged(chronicle, 5, 5, image=False) is PowerState.UNKNOWN


def test_of_a_guest_read_running_after_its_image_was_seen_it_is_unknown_where_its_memory_is(chronicle):
    """Its start may not have been heard of yet."""
    judged(chronicle, 5, 5, image=True)
    read(chronicle, A, 1, 3, domain_id=4)
    assert judged(chronicle, 5, 5, image=False) is PowerState.UNKNOWN


def test_a_guest_that_moved_away_is_not_off_because_an_image_is_gone(chronicle):
    judged(chronicle, 5, 5, image=True)
    assert judged(chronicle, 5, 4, image=False) is PowerState.UNKNOWN


# -- memory that went elsewhere ------------------------------------------------------------------------------

ARRIVES, RESTORED, ARRIVED = (STARTED, 1), (STARTED, 2), (RESUMED, 1)
LEAVES, LEFT, SAVED = (SUSPENDED, 1), (STOPPED, 3), (STOPPED, 4)
ENDS = [(STOPPED, detail) for detail in (0, 1, 2, 5)]
MOVED_FIRST = {
    "moved away": [LEAVES, LEFT],
    "moved away, and did not come back": [LEAVES, LEFT, ARRIVES, (STOPPED, 5)],
    "moved away, and was destroyed as it came back": [LEAVES, LEFT, ARRIVES, (STOPPED, 1)],
    "did not arrive": [ARRIVES, (STOPPED, 5)],
    "killed as it handed over": [LEAVES, (STOPPED, 5)],
    "killed as it handed over by post-copy": [(SUSPENDED, 7), (STOPPED, 1)],
    "killed after a post-copy that failed": [(SUSPENDED, 8), (STOPPED, 1)],
    "moved away, and started here without being let go": [LEFT, (STARTED, 0), (SUSPENDED, 0), (STOPPED, 1)],
}


def hear(chronicle, *events, domain_id=3):
    for event, detail in events:
        chronicle.heard(A, domain_id, event, detail)


def told(chronicle, state, reason, *, domain_id=OFF, image=False, moment=None):
    moment = chronicle.moment() if moment is None else moment
    return chronicle.read(A, domain_id, read_power(state, reason, has_saved_image=image), moment)


@pytest.mark.parametrize("image", [False, True], ids=["", "with an image"])
@pytest.mark.parametrize("reason", range(9))
@pytest.mark.parametrize("events", MOVED_FIRST.values(), ids=MOVED_FIRST.keys())
def test_where_its_memory_went_elsewhere_nothing_is_an_end(chronicle, events, reason, image):
    """A guest that ran elsewhere was fenced here: its way back had been cancelled."""
    boot(chronicle, A, 3)
    hear(chronicle, *events)
    assert chronicle.end_of(A) is None
    reading = told(chronicle, 5, reason, image=image)
    assert (reading.power_state, reading.away, reading.settled) == (PowerState.UNKNOWN, True, False)
    assert chronicle.left(A) is Left.MOVED
    assert chronicle.end_of(A) is None


def test_a_guest_read_as_migrated_has_no_end_after_its_way_back_failed(chronicle):
    """It had left before this subscription began."""
    told(chronicle, 5, 4)
    hear(chronicle, ARRIVES, (STOPPED, 5))
    assert told(chronicle, 5, 6).away


@pytest.mark.parametrize("numbers", [(3, 2), (3, 12), (3, 13)])
def test_what_was_read_amid_a_migration_has_no_end_either(chronicle, numbers):
    """The subscription began amid it."""
    told(chronicle, *numbers, domain_id=3)
    hear(chronicle, (STOPPED, 5))
    assert told(chronicle, 5, 3).away


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "back", [[ARRIVES, ARRIVED], [(RESUMED, 0), (STARTED, 0)], [RESTORED, (RESUMED, 2)]], ids=str
)
@pytest.mark.parametrize("first", [LEFT, SAVED], ids=str)
def test_a_guest_that_ran_here_again_has_an_end(chronicle, first, back, end):
    hear(chronicle, first)
    hear(chronicle, *back, end, domain_id=4)
    assert chronicle.left(A) is None
    assert chronicle.end_of(A) is not None
    assert told(chronicle, 5, 1).power_state is PowerState.STOPPED


def test_so_has_one_that_was_read_running(chronicle):
    hear(chronicle, LEFT, ARRIVES)
    told(chronicle, 1, 2, domain_id=3)
    hear(chronicle, (STOPPED, 1))
    assert chronicle.end_of(A) == "destroyed"


def test_so_has_one_that_left_as_it_was_paused_and_arrived_so(chronicle):
    hear(chronicle, LEFT, ARRIVES)
    told(chronicle, 3, 1, domain_id=3)
    hear(chronicle, (STOPPED, 1))
    assert chronicle.end_of(A) == "destroyed"


def test_so_has_one_whose_leaving_was_called_off(chronicle):
    hear(chronicle, LEAVES, (RESUMED, 0), (STOPPED, 1))
    assert chronicle.end_of(A) == "destroyed"


def test_an_answer_from_before_does_not_bring_a_guest_back(chronicle):
    """An event comes by another thread than an answer: the answer from before may be taken in after it."""
    boot(chronicle, A, 3)
    moment = chronicle.moment()
    hear(chronicle, LEAVES)
    told(chronicle, 1, 1, domain_id=3, moment=moment)
    hear(chronicle, (STOPPED, 5))
    told(chronicle, 1, 1, domain_id=3, moment=moment)
    assert told(chronicle, 5, 3).away


def test_nor_does_one_from_before_send_it_away_again(chronicle):
    moment = chronicle.moment()
    boot(chronicle, A, 3)
    told(chronicle, 5, 4, moment=moment)
    told(chronicle, 3, 2, domain_id=2, moment=moment)
    hear(chronicle, (STOPPED, 1))
    assert chronicle.end_of(A) == "destroyed"


@pytest.mark.parametrize("reason", [0, 1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize(
    "then", [[], [RESTORED, (STOPPED, 5)], [RESTORED, (SUSPENDED, 4), (STOPPED, 1)]], ids=str
)
def test_a_saved_guest_that_was_not_let_go_again_has_no_end(chronicle, then, reason):
    """A restore that failed left "failed", and the guest was fenced; the next restore wrote on."""
    hear(chronicle, SAVED, *then)
    assert chronicle.end_of(A) is None
    reading = told(chronicle, 5, reason)
    assert (reading.power_state, reading.saved) == (PowerState.UNKNOWN, Saved.FILE)
    assert "virsh restore FILE" in reading.raw


def test_one_that_was_only_read_saved_has_none_either(chronicle):
    told(chronicle, 5, 5)
    assert told(chronicle, 5, 6).saved is Saved.FILE


@pytest.mark.parametrize("reason", [0, 5, 6])
def test_a_managed_image_that_is_removed_is_the_end_of_it(chronicle, reason):
    """Not if the guest has moved away since, see above."""
    hear(chronicle, SAVED)
    told(chronicle, 5, reason, image=True)
    assert told(chronicle, 5, reason).power_state is PowerState.STOPPED
    assert chronicle.end_of(A) == "read as shut off"


# -- an old image beside a run -------------------------------------------------------------------------------


def run_beside_an_old_image(chronicle):
    told(chronicle, 5, 5, image=True)
    boot(chronicle, A, 4)


@pytest.mark.parametrize("read_running", [True, False], ids=["read running", "only heard"])
def test_an_image_that_lay_beside_a_run_says_nothing_of_its_end(chronicle, read_running):
    """It was discarded, the guest called off, and its memory restored from a file: two writers."""
    run_beside_an_old_image(chronicle)
    if read_running:
        told(chronicle, 1, 1, domain_id=4, image=True)
    hear(chronicle, SAVED)
    reading = told(chronicle, 5, 5, image=True)
    assert (reading.power_state, reading.saved) == (PowerState.UNKNOWN, Saved.FILE)
    assert "an old managed save image" in reading.raw
    assert chronicle.image_is_old(A)
    assert told(chronicle, 5, 5).power_state is PowerState.UNKNOWN  # nor does its removal


def test_an_image_seen_beside_a_run_first_says_nothing_either(chronicle):
    told(chronicle, 1, 1, domain_id=4, image=True)
    assert told(chronicle, 5, 5, image=True).power_state is PowerState.UNKNOWN


def test_a_start_that_fails_leaves_the_image_as_it_was(chronicle):
    """It was read amid that, and called an old one for good: no policy could discard it any more."""
    hear(chronicle, SAVED)
    told(chronicle, 5, 5, image=True)
    told(chronicle, 3, 11, domain_id=4, image=True)
    hear(chronicle, (STOPPED, 5))
    assert told(chronicle, 5, 6, image=True).power_state is PowerState.SAVED
    assert not chronicle.image_is_old(A)


def test_an_image_that_the_run_began_without_is_of_its_end(chronicle):
    run_beside_an_old_image(chronicle)
    told(chronicle, 1, 3, domain_id=4)
    hear(chronicle, SAVED)
    assert told(chronicle, 5, 5, image=True).power_state is PowerState.SAVED
    assert not chronicle.image_is_old(A)


def test_an_old_image_of_a_guest_that_was_destroyed_may_be_discarded(chronicle):
    """That the run is over is certain; a start would go on from the image."""
    run_beside_an_old_image(chronicle)
    told(chronicle, 1, 1, domain_id=4, image=True)
    hear(chronicle, (STOPPED, 1))
    assert told(chronicle, 5, 2, image=True).power_state is PowerState.SAVED
    assert not chronicle.image_is_old(A)
    assert told(chronicle, 5, 2).power_state is PowerState.STOPPED


# -- a restore that waits to be let go -----------------------------------------------------------------------


@pytest.mark.parametrize("suspended", [0, 4])
def test_a_guest_that_was_restored_paused_is_paused(chronicle, suspended):
    """Libvirt calls it by the reason of a migration: it read "stopping" for ever."""
    hear(chronicle, RESTORED, (SUSPENDED, suspended))
    reading = told(chronicle, 3, 2, domain_id=3)
    assert (reading.power_state, reading.settled) == (PowerState.PAUSED, True)


@pytest.mark.parametrize(
    "events", [[], [ARRIVES], [RESTORED, (RESUMED, 2)], [RESTORED, LEAVES], [RESTORED, (STOPPED, 5), ARRIVES]]
)
def test_all_others_with_that_reason_are_on_their_way(chronicle, events):
    hear(chronicle, *events)
    reading = told(chronicle, 3, 2, domain_id=3)
    assert (reading.power_state, reading.settled) == (PowerState.STOPPING, False)


@pytest.mark.parametrize("end", [(STOPPED, 1), (STOPPED, 2)])
def test_a_restore_that_used_its_image_up_leaves_no_memory_behind(chronicle, end):
    """It was stopped, as a paused guest is, and then refused for good as saved."""
    hear(chronicle, SAVED)
    told(chronicle, 5, 5, image=True)
    hear(chronicle, RESTORED, (SUSPENDED, 4))
    told(chronicle, 3, 2, domain_id=3, image=True)  # libvirt removes it once the restore is done
    assert chronicle.left(A) is Left.SAVED
    told(chronicle, 3, 2, domain_id=3, image=False)
    hear(chronicle, end)
    assert told(chronicle, 5, end[1]).power_state is PowerState.STOPPED
    assert chronicle.end_of(A) is not None


@pytest.mark.parametrize("reason", [11, 2], ids=["starting up", "its start not heard yet"])
def test_a_restore_that_takes_long_uses_its_image_up_as_well(chronicle, reason):
    """It is read while its memory is loaded, as any that has some has to be."""
    hear(chronicle, SAVED)
    told(chronicle, 5, 5, image=True)
    assert told(chronicle, 3, reason, domain_id=3, image=True).power_state is PowerState.STOPPING
    hear(chronicle, RESTORED, (SUSPENDED, 4))
    assert told(chronicle, 3, 2, domain_id=3).saved is None
    hear(chronicle, (STOPPED, 1))
    assert told(chronicle, 5, 2).power_state is PowerState.STOPPED


@pytest.mark.parametrize("heard", [[], [SAVED]], ids=["saved before it was watched", "saved just now"])
def test_a_restore_from_a_file_that_was_not_read_saved_is_told(chronicle, heard):
    """It was cut off as any paused guest is, and then called off, or refused: its memory is there still."""
    hear(chronicle, *heard, RESTORED, (SUSPENDED, 4))
    reading = told(chronicle, 3, 2, domain_id=3)
    assert (reading.power_state, reading.saved) == (PowerState.PAUSED, Saved.FILE)
    hear(chronicle, (STOPPED, 1))
    assert told(chronicle, 5, 2).saved is Saved.FILE


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([RESTORED, (SUSPENDED, 4)], 1),
        ([(STARTED, 3), (SUSPENDED, 5)], 7),
        ([(STARTED, 0), (SUSPENDED, 0)], 1),
    ],
    ids=["a snapshot of it was taken", "reverted", "started cold"],
)
def test_whatever_waits_beside_a_file_of_the_last_run_is_told(chronicle, events, reason):
    hear(chronicle, SAVED, *events)
    reading = told(chronicle, 3, reason, domain_id=3)
    assert (reading.power_state, reading.saved) == (PowerState.PAUSED, Saved.FILE)
    hear(chronicle, (RESUMED, 0), (SUSPENDED, 0))
    assert told(chronicle, 3, 1, domain_id=3).saved is None


def test_a_restore_after_its_image_was_removed_is_one_from_a_file(chronicle):
    told(chronicle, 5, 5, image=True)
    assert told(chronicle, 5, 5).power_state is PowerState.STOPPED
    hear(chronicle, RESTORED, (SUSPENDED, 4))
    assert told(chronicle, 3, 2, domain_id=3).saved is Saved.FILE


@pytest.mark.parametrize("image", [False, True], ids=["", "with an old image"])
def test_a_restore_from_a_file_leaves_the_file(chronicle, image):
    if image:
        run_beside_an_old_image(chronicle)
    hear(chronicle, SAVED)
    told(chronicle, 5, 5, image=image)
    hear(chronicle, RESTORED, (SUSPENDED, 4))
    told(chronicle, 3, 2, domain_id=3, image=image)
    told(chronicle, 3, 2, domain_id=3, image=False)
    hear(chronicle, (STOPPED, 1))
    assert told(chronicle, 5, 2).saved is Saved.FILE
    assert chronicle.end_of(A) is None


def test_a_restore_that_failed_beside_its_image_is_still_saved(chronicle):
    hear(chronicle, SAVED)
    told(chronicle, 5, 5, image=True)
    hear(chronicle, RESTORED)
    told(chronicle, 3, 2, domain_id=3, image=True)
    hear(chronicle, (STOPPED, 5))
    assert told(chronicle, 5, 6, image=True).power_state is not PowerState.STOPPED


# -- a session daemon that lost sight of its guests ----------------------------------------------------------

ALIVE = [(1, 1), (3, 1), (4, 0)]


@pytest.mark.parametrize("numbers", ALIVE)
def test_a_guest_that_was_read_alive_is_not_off_because_its_daemon_has_forgotten_it(numbers):
    """Its runtime folder had gone with the last logout, and QEMU ran on."""
    alive = set()
    told(Chronicle("1", alive), *numbers, domain_id=3)
    later = Chronicle("2", alive)
    reading = told(later, 5, 0)
    assert (reading.power_state, reading.settled) == (PowerState.UNKNOWN, False)
    assert "loginctl enable-linger" in reading.raw
    assert later.end_of(A) is None


def test_the_systems_daemon_may_forget(chronicle):
    told(chronicle, 1, 1, domain_id=3)
    assert told(chronicle, 5, 0).power_state is PowerState.STOPPED


@pytest.mark.parametrize("reason", [1, 2, 3, 6])
def test_a_daemon_that_knows_of_the_end_is_believed(reason):
    alive = set()
    told(Chronicle("1", alive), 1, 1, domain_id=3)
    assert told(Chronicle("2", alive), 5, reason).power_state is PowerState.STOPPED
    assert told(Chronicle("3", alive), 5, 0).power_state is PowerState.STOPPED


def test_so_is_one_whose_guest_was_heard_to_end():
    """Even where an answer from before the end is taken in after it."""
    alive = set()
    chronicle = Chronicle("1", alive)
    moment = chronicle.moment()
    told(chronicle, 1, 1, domain_id=3)
    hear(chronicle, (STOPPED, 1))
    told(chronicle, 1, 1, domain_id=3, moment=moment)
    assert told(Chronicle("2", alive), 5, 0).power_state is PowerState.STOPPED


# -- hibernation --------------------------------------------------------------------------------------------

HIBERNATED = (7, 1)
HIBERNATES = [
    pytest.param((HIBERNATED, (STOPPED, 0)), id="first its event"),
    pytest.param(((STOPPED, 0), HIBERNATED), id="first its end"),
    pytest.param((HIBERNATED, HIBERNATED, (STOPPED, 0)), id="both of its events"),
    pytest.param((HIBERNATED, (STOPPED, 1)), id="destroyed before it was off"),
]


@pytest.mark.parametrize("events", HIBERNATES)
def test_the_memory_of_a_guest_that_hibernated_is_inside_its_disk(chronicle, events):
    boot(chronicle, A, 3)
    told(chronicle, 1, 1, domain_id=3)
    hear(chronicle, *events)
    for _ in range(2):
        off = told(chronicle, 5, 1)
        assert (off.power_state, off.settled, off.saved) == (PowerState.UNKNOWN, False, Saved.DISK)
        assert "after it hibernated: its memory is inside its own disk" in off.raw
    assert chronicle.end_of(A) is None


def test_a_managed_image_beside_that_is_no_way_to_discard_it(chronicle):
    hear(chronicle, HIBERNATED, (STOPPED, 0))
    assert told(chronicle, 5, 1, image=True).power_state is PowerState.UNKNOWN


def test_a_running_answer_that_is_older_than_a_hibernation_ends_nothing(chronicle):
    boot(chronicle, A, 3)
    began = chronicle.moment()
    hear(chronicle, HIBERNATED)
    read(chronicle, A, 1, 1, domain_id=3, moment=began)
    hear(chronicle, (STOPPED, 0))
    assert told(chronicle, 5, 1).saved is Saved.DISK


@pytest.mark.parametrize("numbers", [(7, 0), (3, 1)], ids=["before it is off", "started, and paused at once"])
def test_nor_does_one_that_stands_still(chronicle, numbers):
    hear(chronicle, HIBERNATED)
    paused = told(chronicle, *numbers, domain_id=3)
    assert (paused.power_state, paused.saved) == (PowerState.PAUSED, Saved.DISK)
    hear(chronicle, (STOPPED, 0))
    assert told(chronicle, 5, 1).saved is Saved.DISK


@pytest.mark.parametrize("heard", [True, False], ids=["its start heard first", "its run read first"])
def test_whether_the_run_after_a_hibernation_began_with_old_memory_is_not_known(chronicle, heard):
    """It is called booted; the kernel in it continues from its image, or boots, if that is gone."""
    hear(chronicle, HIBERNATED, (STOPPED, 0))
    if heard:
        boot(chronicle, A, 4)
    assert told(chronicle, 1, 1, domain_id=4).cold_start is None
    boot(chronicle, A, 4)
    readings = [told(chronicle, 1, 1, domain_id=4) for _ in range(4)]
    assert [reading.cold_start for reading in readings] == [None] * 4
    hear(chronicle, (STOPPED, 1), domain_id=4)
    assert told(chronicle, 5, 2).power_state is PowerState.STOPPED
    boot(chronicle, A, 5)
    assert told(chronicle, 1, 1, domain_id=5).cold_start is True


@pytest.mark.parametrize(
    "started",
    [
        ((RESUMED, 0), (STARTED, 0)),
        ((STARTED, 0), (RESUMED, 0)),
        ((STARTED, 0), (SUSPENDED, 0)),
        ((RESUMED, 0),),
        ((STARTED, 2), (RESUMED, 0)),
    ],
    ids=["resumed first", "started first", "started paused", "failed while it started", "restored"],
)
@pytest.mark.parametrize("end", [0, 1, 4, 5], ids=["off by itself", "destroyed", "saved", "failed"])
def test_one_that_ends_before_it_was_read_running_may_continue_from_its_disk(chronicle, started, end):
    hear(chronicle, HIBERNATED, (STOPPED, 0))
    hear(chronicle, *started, (STOPPED, end), domain_id=4)
    off = told(chronicle, 5, 2)
    assert (off.power_state, off.settled, off.saved) == (PowerState.UNKNOWN, False, Saved.DISK)
    assert chronicle.end_of(A) is None


def test_the_first_readings_of_the_run_after_a_hibernation_carry_it(chronicle):
    """Any of them may get lost on its way to whoever notes it on the Node."""
    hear(chronicle, HIBERNATED, (STOPPED, 0))
    boot(chronicle, A, 4)
    readings = [told(chronicle, 1, 1, domain_id=4) for _ in range(4)]
    assert [reading.saved for reading in readings] == [Saved.DISK, Saved.DISK, Saved.DISK, None]
    assert {reading.power_state for reading in readings} == {PowerState.RUNNING}
    assert "may still be inside its own disk" in readings[0].raw


def test_what_was_read_before_its_start_was_heard_does_not_count_among_them(chronicle):
    hear(chronicle, HIBERNATED, (STOPPED, 0))
    began = chronicle.moment()
    boot(chronicle, A, 4)
    for _ in range(9):
        assert told(chronicle, 1, 1, domain_id=4, moment=began).saved is Saved.DISK
        assert told(chronicle, 3, 1, domain_id=4).saved is Saved.DISK
    assert told(chronicle, 1, 1, domain_id=4).saved is Saved.DISK


def test_another_subscription_knows_nothing_of_it():
    """What docs/safety.md names: off by itself is all that libvirt reports of it later."""
    assert told(Chronicle("8"), 5, 1).power_state is PowerState.STOPPED

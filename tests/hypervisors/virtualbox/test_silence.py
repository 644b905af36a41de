"""Which machines rest from sweeps."""

from fencer.hypervisors.virtualbox.silence import Silence


def test_one_unanswered_asking_says_nothing():
    silence = Silence(30.0)
    silence.missed("a", 100.0)
    assert silence.rests_for_s("a", 100.0) is None
    assert not silence.hangs("a")


def test_two_in_a_row_let_it_rest_from_the_second_on():
    silence = Silence(30.0)
    silence.missed("a", 100.0)
    silence.missed("a", 105.0)
    assert silence.hangs("a")
    assert silence.rests_for_s("a", 134.0) == 29.0
    assert silence.rests_for_s("a", 135.0) is None
    assert silence.rests_for_s("b", 106.0) is None


def test_after_its_rest_one_more_is_enough():
    silence = Silence(30.0)
    for now_s in (100.0, 105.0, 136.0):
        silence.missed("a", now_s)
    assert silence.rests_for_s("a", 140.0) == 4.0


def test_an_answer_in_between_begins_again():
    silence = Silence(30.0)
    silence.missed("a", 100.0)
    silence.answered("a")
    silence.missed("a", 105.0)
    assert not silence.hangs("a")
    assert silence.rests_for_s("a", 106.0) is None

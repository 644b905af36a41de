"""What every `HostPower` witness must do, whether its board is simulated or asked through a fence agent.

A subclass gives the fixtures `witness` and `board`: what really is, and how it can be broken.
"""

from __future__ import annotations

from fencer.errors import HypervisorError


class HostPowerContract:
    """Inherit, and give `witness` and `board`."""

    def test_it_names_its_host(self, witness):
        assert witness.host == "pve1"

    def test_on_is_on(self, witness, board):
        board.turn(on=True)
        assert witness.is_off() is False

    def test_off_is_off_each_time_it_is_read(self, witness, board):
        board.turn(on=False)
        assert [witness.is_off(), witness.is_off()] == [True, True]

    def test_it_reads_what_is_and_not_what_was(self, witness, board):
        board.turn(on=False)
        assert witness.is_off() is True
        board.turn(on=True)
        assert witness.is_off() is False

    def test_a_board_that_fails_is_never_off(self, witness, board):
        board.turn(on=False)
        board.fail()
        try:
            off = witness.is_off()
        except HypervisorError:
            off = None
        assert off is None

    def test_asking_changes_nothing(self, witness, board):
        board.turn(on=True)
        witness.is_off()
        assert board.orders == []


class WordsContract:
    """The same for boards that have words besides on and off: give `witness`, `board` and `odd_words`."""

    def test_no_other_word_is_off(self, witness, board, odd_words):
        for word in odd_words:
            board.say(word)
            try:
                off = witness.is_off()
            except HypervisorError:
                continue
            assert off is not True, word

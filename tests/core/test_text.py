"""Text from outside, fit for a terminal."""

import pytest

from fencer.core.text import alike, listing, natural, near, no_such_node, of_limit, printable, unticked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("k8s-1", "k8s-1"),
        ("Zürich 東京 😀", "Zürich 東京 😀"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J\x7f\x9b", "\\x1b[2J\\x7f\\x9b"),
        ("\u202egnp\u200b\u2028", "\\u202egnp\\u200b\\u2028"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_only_what_can_be_seen_stays(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_a_text_from_outside_ends_no_command_that_it_is_told_beside():
    assert unticked("k8s-1`; `rm\n") == "k8s-1'; 'rm\\n"


@pytest.mark.parametrize(
    ("names", "told"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d\n"], "a, b, c and 1 more")],
)
def test_names_are_told_in_one_phrase_that_does_not_grow_without_end(names, told):
    assert listing(names, 3) == told


def test_a_name_cannot_end_the_line_it_is_listed_in():
    assert listing(["a\nb"]) == "a\\nb"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("no answer for 3 s", "no answer for 411 s", True),
        ("request 6f1c8c1e failed", "request 77ab0000 failed", True),
        ("list nodes: 401: no", "list nodes: 500: no", False),
        ("refused", "timed out", False),
    ],
)
def test_the_same_said_again_is_alike_whatever_its_numbers(one, other, same):
    assert (alike(one) == alike(other)) is same


@pytest.mark.parametrize(
    ("spent_s", "limit_s", "told"),
    [
        (0, 600, "0 s of 600 s"),
        (32.9, 600.0, "32 s of 600 s"),
        (0.5, 1.5, "0 s of 1.5 s"),
        (700, float("inf"), "700 s"),
    ],
)
def test_of_a_limit_as_much_is_told_as_is_spent_in_the_unit_that_was_typed(spent_s, limit_s, told):
    assert of_limit(spent_s, limit_s) == told


def test_names_are_sorted_as_people_do():
    names = ["k8s-10", "k8s-2", "2-b", "10-a", "k8s", "k8s-2-new", "\u0663-x", "k8s-\u00b2"]
    assert sorted(names, key=natural) == [
        "2-b",
        "10-a",
        "k8s",
        "k8s-2",
        "k8s-2-new",
        "k8s-10",
        "k8s-\u00b2",
        "\u0663-x",
    ]


def test_numbers_in_names_may_be_longer_than_python_converts():
    huge = "9" * 5000
    assert sorted([f"n1{huge}", f"n{huge}", "n007", "n8", "n0"], key=natural) == [
        "n0", "n007", "n8", f"n{huge}", f"n1{huge}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("k8s2", "; did you mean k8s-2?"),
        ("K8S_2", "; did you mean k8s-2?"),
        ("k8s-9", ""),  # as near to one as to another
        ("frobnicate", ""),
        ("", ""),
    ],
)
def test_a_word_is_taken_to_mean_another_only_where_one_is_clearly_nearest(typed, told):
    assert near(typed, ["k8s-1", "k8s-2", "cp-1"]) == told
    assert near(typed, []) == ""


def test_of_many_nodes_the_five_nearest_are_listed():
    nodes = [f"k8s-{number}" for number in range(154)]
    told = no_such_node("k8s-12x\n", nodes)
    assert told.startswith("k8s-12x\\n: no such node; did you mean k8s-12? Nodes: k8s-12, ")
    assert told.endswith(" and 149 more")
    assert no_such_node("k8s-1", ()) == "k8s-1: no such node. Nodes: none"

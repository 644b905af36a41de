"""Selectors match what Kubernetes' own would."""

import pytest

from fencer.ports.selectors import NodeSelector, NodeTerm, Operator, Requirement, Selector

LABELS = {"app": "web", "tier": "7"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "holds"),
    [
        ("app", Operator.IN, ("web", "db"), True),
        ("app", Operator.IN, ("db",), False),
        ("gone", Operator.IN, ("web",), False),
        ("app", Operator.NOT_IN, ("web",), False),
        ("app", Operator.NOT_IN, ("db",), True),
        ("gone", Operator.NOT_IN, ("web",), True),
        ("app", Operator.EXISTS, (), True),
        ("gone", Operator.EXISTS, (), False),
        ("app", Operator.DOES_NOT_EXIST, (), False),
        ("gone", Operator.DOES_NOT_EXIST, (), True),
        ("tier", Operator.GREATER, ("6",), True),
        ("tier", Operator.GREATER, ("7",), False),
        ("tier", Operator.LESS, ("8",), True),
        ("tier", Operator.LESS, ("7",), False),
        ("app", Operator.GREATER, ("6",), False),
        ("gone", Operator.LESS, ("6",), False),
        ("tier", Operator.GREATER, ("many",), False),
        ("tier", Operator.GREATER, (), False),
        ("tier", Operator.LESS, ("8", "9"), False),
    ],
)
def test_a_requirement(key, operator, values, holds):
    assert Requirement(key, operator, values).holds(LABELS) is holds


def test_all_requirements_must_hold_and_none_means_everything():
    app, tier = Requirement("app", Operator.IN, ("web",)), Requirement("tier", Operator.IN, ("1",))
    assert Selector((app,)).matches(LABELS)
    assert not Selector((app, tier)).matches(LABELS)
    assert Selector().matches({})


def test_a_node_qualifies_by_any_term_by_labels_or_name():
    by_label = NodeTerm(labels=(Requirement("zone", Operator.IN, ("a",)),))
    by_name = NodeTerm(fields=(Requirement("metadata.name", Operator.IN, ("k8s-2",)),))
    selector = NodeSelector((by_label, by_name))
    assert selector.admits("k8s-1", {"zone": "a"})
    assert selector.admits("k8s-2", {"zone": "b"})
    assert not selector.admits("k8s-3", {"zone": "b"})


def test_within_a_term_labels_and_name_must_both_hold():
    both = NodeTerm(
        labels=(Requirement("zone", Operator.IN, ("a",)),),
        fields=(Requirement("metadata.name", Operator.IN, ("k8s-1",)),),
    )
    assert both.admits("k8s-1", {"zone": "a"})
    assert not both.admits("k8s-2", {"zone": "a"})
    assert not both.admits("k8s-1", {"zone": "b"})


def test_a_term_without_conditions_and_a_selector_without_terms_admit_nobody():
    assert not NodeTerm().admits("k8s-1", {"zone": "a"})
    assert not NodeSelector().admits("k8s-1", {})

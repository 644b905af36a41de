"""Names that nobody has: what may have been meant, and never a list of hundreds."""

import pytest

from tests.cli.lab import Lab


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["staus"], "staus: no such command; did you mean status?"),
        (
            ["demo", "vm-pausd"],
            "vm-pausd: no such scenario; did you mean vm-paused? `fencer demo --list` shows all.",
        ),
        (["explain", "k8s2"], "k8s2: no such node; did you mean k8s-2? Nodes: k8s-2, k8s-1, k8s-3"),
        (["plan", "K8S-2"], "K8S-2: no such node; did you mean k8s-2? Nodes: k8s-2, k8s-1, k8s-3"),
        (["status", "k8s-9"], "k8s-9: no such node. Nodes: k8s-1, k8s-2, k8s-3"),
        (["nonsense"], "nonsense: no such command."),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_was_meant_is_said_where_one_name_is_nearest(words, meant):
    done = Lab().run(*words)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].partition(": ")[2] == meant


@pytest.mark.parametrize("verb", ["explain", "plan"])
def test_of_many_nodes_the_five_nearest_are_named(verb):
    said = Lab(nodes=30).run(verb, "k8s-2222").stderr.strip()
    assert said.endswith("Nodes: k8s-22, k8s-2, k8s-12, k8s-20, k8s-21 and 25 more")

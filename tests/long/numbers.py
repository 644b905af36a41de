"""The same with other numbers: what the gate tries a little of."""

from __future__ import annotations

from tests.long.parts import Part, do
from tests.long.site import Site

EXAMPLES = 3000
INCIDENTS = 20_000
MESSAGES = 2000
FAULTS = 60
AGENTS = 30
TIMES = 30

RACES = (
    *("tests/contract/test_asker_threads.py", "tests/runtime/test_workers.py", "tests/hook/test_hook.py"),
    *("tests/contract/test_cluster_real.py", "tests/cluster/test_real_api.py"),
    *("tests/hypervisors/libvirt/test_real.py", "tests/hypervisors/virtualbox/test_run.py"),
)
"""Threads, sockets and processes of others: workers that are given up, nudges, writes by version of two
agents, calls of libvirt that hang, programs that do not end."""
RACES_END_TO_END = (
    "tests/e2e/test_hung_hypervisor.py",
    "tests/e2e/test_other_hands.py::test_a_guest_that_is_started_between_the_proof_and_the_taint",
)


def seeds(site: Site) -> str:
    """Draw examples, incidents in memory, and faults on real parts: others each day, the same by `--seed`."""
    incidents, faults = row(site.seed, INCIDENTS), row(site.seed, FAULTS)
    return do(
        site,
        [
            Part(
                "properties",
                ("./dev", "test", "-m", "hypothesis", f"--hypothesis-seed={site.seed}"),
                {"FENCER_EXAMPLES": str(EXAMPLES)},
            ),
            Part(
                "incidents",
                ("./dev", "test", "tests/scenarios/test_incidents_by_seed.py"),
                {"FENCER_INCIDENT_SEEDS": incidents},
            ),
            Part(
                "messages",
                ("./dev", "test", "tests/notify/test_worlds.py"),
                {"FENCER_INCIDENT_SEEDS": row(site.seed, MESSAGES)},
            ),
            Part(
                "faults",
                ("./dev", "test", "tests/e2e/test_random_faults.py"),
                {"FENCER_FAULT_SEEDS": faults},
            ),
            Part(
                "agents",
                ("./dev", "test", "tests/e2e/test_several_agents.py"),
                {"FENCER_AGENT_SEEDS": row(site.seed, AGENTS)},
            ),
        ],
    )


def races(site: Site) -> str:
    """Run each test that races again and again, without second tries."""
    again = ("./dev", "test", "-p", "tests.long.again", "--again", str(TIMES))
    once = {"FENCER_SECOND_TRY": "0"}
    return do(
        site,
        [Part("in parts", (*again, *RACES), once), Part("end to end", (*again, *RACES_END_TO_END), once)],
    )


def row(seed: int, length: int) -> str:
    """Return a row of seeds that no other seed's row of this length has in common with this one."""
    return f"{seed * length}-{(seed + 1) * length - 1}"

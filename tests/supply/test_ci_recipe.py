"""The recipe for a forge does what a person can do by hand, on the Pythons that fencer is for."""

import re
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
RECIPE = yaml.safe_load((CHECKOUT / ".github/workflows/ci.yml").read_text())
DEV = (CHECKOUT / "dev").read_text()
VERBS = set(re.findall(r"^([a-z|]+)\)$", DEV.partition("case $verb in")[2], re.MULTILINE))
PYTHONS = re.search(r"for version in (.+); do", DEV)[1].split()
STEPS = [step for job in RECIPE["jobs"].values() for step in job["steps"]]
COMMANDS = [step["run"] for step in STEPS if "run" in step]


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("./dev")])
def test_what_it_calls_exists(command):
    _, verb, *_ = command.split()
    assert verb in VERBS


def test_it_lints_tests_and_packages():
    assert {command.split()[1] for command in COMMANDS if command.startswith("./dev")} == {
        "lint",
        "quick",
        "deb",
    }


def test_the_quick_tests_run_on_each_python_that_dev_knows():
    quick = RECIPE["jobs"]["quick"]
    assert quick["strategy"]["matrix"]["python"] == PYTHONS
    [step] = [step for step in quick["steps"] if step.get("run") == "./dev quick"]
    assert step["env"] == {"FENCER_PYTHON": "${{ matrix.python }}"}
    assert f'requires-python = ">={PYTHONS[0]}"' in (CHECKOUT / "pyproject.toml").read_text()


def test_it_uses_nobodys_actions_but_the_forges_own():
    used = {step["uses"] for step in STEPS if "uses" in step}
    assert {name.partition("@")[0] for name in used} == {
        "actions/checkout",
        "actions/setup-python",
        "actions/upload-artifact",
    }
    assert all(re.fullmatch(r"v\d+|[0-9a-f]{40}", name.partition("@")[2]) for name in used)


def test_it_may_only_read():
    assert RECIPE["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in RECIPE["jobs"].values())
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_nothing_that_somebody_else_wrote_gets_into_a_command():
    """A branch's or a pull request's name may be anything."""
    assert not [command for command in COMMANDS if "${{" in command]


def test_every_job_ends_by_itself():
    assert all(job["timeout-minutes"] <= 60 for job in RECIPE["jobs"].values())

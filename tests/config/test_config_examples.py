"""The files a person starts from are right, and the first of them is complete."""

import re

import pytest

from fencer.config.document import parse
from fencer.config.load import check, load
from fencer.config.schema import File
from fencer.core.policy import Mode, Policy
from tests.config.samples import CONFIG, EXAMPLES, REFERENCE, keys, uncommented


@pytest.mark.parametrize("file", [REFERENCE, *EXAMPLES], ids=lambda file: file.name)
def test_it_loads_and_only_observes(file):
    assert load(file).policy.mode is Mode.OBSERVE


def test_the_reference_as_it_stands_has_all_defaults():
    assert load(REFERENCE).policy == Policy()


def test_the_reference_has_every_key(cells):
    document = check(parse(uncommented().encode(), "fencer.yaml")).document
    written = {tuple(part for part in place if isinstance(part, str)) for place in document.lines}
    assert [place for place, _ in keys() if place not in written] == []


NO_DEFAULT = {"max_fenced", "max_fenced_hosts"}
"""What depends on how many there are."""


def test_the_reference_shows_the_defaults_of_the_policy(cells):
    file = check(parse(uncommented().encode(), "fencer.yaml")).file
    shown = file.policy.model_dump(exclude=NO_DEFAULT)
    assert shown == File.model_validate(
        {**file.model_dump(), "mode": Mode.OBSERVE, "policy": {}}
    ).policy.model_dump(exclude=NO_DEFAULT)


RECIPES = {
    "careful": Policy(require_not_ready=True, lease_silent_s=40),
    "quick": Policy(require_not_ready=False, lease_silent_s=20),
    "seconds": Policy(require_not_ready=False, lease_silent_s=0),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_what_its_name_promises(name):
    assert load(CONFIG / "examples" / f"recipe-{name}.yaml").policy == RECIPES[name]


@pytest.mark.parametrize("name", RECIPES)
def test_the_reference_tells_each_recipe_as_its_file_has_it(name):
    told = REFERENCE.read_text().split(f"recipe-{name}.yaml")[1]
    lines = re.findall(r"^#     (\w+: \w+)$", told, flags=re.MULTILINE)[:2]
    policy = RECIPES[name]
    assert lines == [
        f"require_not_ready: {str(policy.require_not_ready).lower()}",
        f"lease_silent_s: {policy.lease_silent_s}",
    ]

"""Hypervisors whose adapters other packages bring: what may be written of them, what is said otherwise."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from fencer.config.keys import OWN_TYPES
from fencer.config.schema import json_schema, sections_at
from fencer.config.settings import AdapterEndpoint, LibvirtEndpoint
from fencer.core.identity import Admission
from fencer.hosts.settings import FenceAgentSettings
from fencer.hypervisors.adapters import AdapterSettings, connect
from tests.config.samples import VALID, WITH_OTHERS
from tests.support.adapters import EXAMPLE, install, on_path

CELLS = VALID.replace("type: libvirt", "type: cells").replace("    uri: qemu:///system\n", "")


REFUSED = (
    "api_key apikey pass db_pass passwd pwd user_pwd auth basic_auth private_key "
    "credential credentials access_key secret_key tokens apitoken rootpassword"
)


def test_everything_written_arrives(cells, load_text):
    config = load_text(WITH_OTHERS)
    assert config.endpoints[-1] == AdapterEndpoint(
        "farm",
        "cells",
        {"farm": "/srv/farm", "servers": ["a", "b"], "tries": 3},
        {"token": Path("/etc/fencer/farm-token")},
        Admission(mapped=True),
        (FenceAgentSettings("farm1", "fence_ipmilan"),),
        one_host=True,
    )
    assert Path("/etc/fencer/farm-token") in config.secrets


def test_the_least_is_a_name_and_a_type(cells, load_text):
    (endpoint,) = load_text(CELLS).endpoints
    assert endpoint == AdapterEndpoint("lab", "cells")
    assert endpoint.power.nobody
    assert not endpoint.one_host


def test_a_type_that_nobody_brings_is_told_with_those_that_there_are(cells, problems_of):
    (said,) = problems_of(CELLS.replace("cells", "incus"))
    types = "libvirt or proxmox or virtualbox or cells"
    another = "if another package brings its adapter, install that beside fencer"
    assert said == f'config.yaml:6: hypervisors[0].type: must be {types}, not "incus"; {another}'
    (said,) = problems_of(CELLS.replace("cells", "cell"))
    assert said.endswith('not "cell"; did you mean cells?')


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("uri: qemu:///system", ".uri: unknown key; it is of type libvirt"),
        ("sttings: {}", ".sttings: unknown key; did you mean settings?"),
        ("power: {tag: fencer}", ".power.tag: unknown key; known here: mapped, uuids"),
        (
            "settings: {password: x}",
            ".settings.password: password must not be written here: write it into a file, ",
        ),
        (
            "settings: {api_token: x}",
            ".settings.api_token: api_token must not be written here: write it into a fil",
        ),
        (
            "settings: {Farm: x}",
            '.settings.Farm: must be a setting of the adapter, like server_url, not "Farm"',
        ),
        (
            "settings: {url: 'https://a:b@c'}",
            ".settings.url: must not carry a password: write it into a file, and",
        ),
        (
            "settings: {farm: {a: b}}",
            ".settings.farm: must be text, a number, true or false, or a list of these",
        ),
        ("url: https://farm", ".url: unknown key; what the adapter wants to know belongs under `settings:`"),
        ("settings: {farm: }", ".settings.farm: must be text, a number, true or false, or a list of these"),
        (
            "settings: {farm: [[a]]}",
            ".settings.farm: must be text, a number, true or false, or a list of these",
        ),
        ("settings: []", ".settings: must be a mapping (`key: value` lines), not a list"),
        (
            "secret_files: {token: t0psecret}",
            ".secret_files.token: must be the path of a file, which begins with /. What is written there is",
        ),
        ("one_host: maybe", '.one_host: must be true or false, not "maybe"'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(cells, problems_of, written, said):
    (problem,) = problems_of(f"{CELLS}    {written}\n")
    assert problem.startswith(f"config.yaml:7: hypervisors[0]{said}")


def test_the_configuration_of_the_guide_is_taken_by_fencer_and_by_the_example(cells, load_text):
    section = (EXAMPLE.parent / "adapters.md").read_text().partition("## For its users\n\n")[2]
    block = re.match(r"(?:(?:    .*)?\n)+", section)
    config = load_text(textwrap.dedent(block[0]))
    assert config.nodes
    (endpoint,) = config.endpoints
    assert endpoint == AdapterEndpoint(
        "farm", "cells", {"farm": "/srv/farm"}, power=Admission(mapped=True), one_host=True
    )
    connect("cells", AdapterSettings("farm", endpoint.settings, endpoint.secret_files, now_s=lambda: 0.0))


@pytest.mark.parametrize("name", REFUSED.split())
def test_a_secret_among_the_settings_is_refused_and_not_shown(cells, problems_of, name):
    (problem,) = problems_of(f"{CELLS}    settings: {{{name}: t0psecret}}\n")
    assert f".settings.{name}: {name} must not be written here: write it into a file, and " in problem
    assert "t0psecret" not in problem


@pytest.mark.parametrize(
    "name", ["auth_method", "pass_through", "bypass", "token_id", "private_key_file", "key", "author"]
)
def test_a_name_that_only_sounds_so_is_none(cells, load_text, name):
    (endpoint,) = load_text(f"{CELLS}    settings: {{{name}: x}}\n").endpoints
    assert endpoint.settings == {name: "x"}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://farm/?token=t0psecret", "token"),
        ("https://farm/api?v=1&api_key=t0psecret#x", "api_key"),
        ("https://farm/?X-Api-Key=t0psecret", "X-Api-Key"),
        ("https://farm/?a=b;PASS=t0psecret", "PASS"),
    ],
)
def test_a_secret_in_a_urls_query_is_refused_and_not_shown(cells, problems_of, url, name):
    for value in (f"'{url}'", f"[a, '{url}']"):
        (problem,) = problems_of(f"{CELLS}    settings: {{url: {value}}}\n")
        assert f".settings.url: must not carry a secret, as after {name}= in it" in problem
        assert "t0psecret" not in problem


@pytest.mark.parametrize(
    "url", ["https://farm/?v=1&token_id=7", "https://farm/?token=", "https://farm/token=x"]
)
def test_a_query_without_one_is_taken(cells, load_text, url):
    (endpoint,) = load_text(f"{CELLS}    settings: {{url: '{url}'}}\n").endpoints
    assert endpoint.settings == {"url": url}


@pytest.mark.parametrize(
    "written",
    [
        'settings: {url: "t0psecret\\n"}',
        "settings: {url: {token: t0psecret}}",
        "settings: t0psecret",
        "settings: {url: 'https://a:t0psecret@c'}",
        "secret_files: {token: t0psecret}",
        "secret_files: {token: [t0psecret]}",
        "secret_files: {token: 70953237}",
        "secret_files: t0psecret",
        'secret_files: {token: "/t0psecret\\n"}',
    ],
)
def test_no_value_that_is_refused_is_shown(cells, problems_of, written):
    said = "".join(problems_of(f"{CELLS}    {written}\n"))
    assert said
    assert not {"t0psecret", "70953237"} & set(re.findall(r"\w+", said))


def test_fencers_own_types_take_no_settings_for_others(cells, problems_of):
    for key, value in {"settings": "{a: b}", "secret_files": "{a: /b}", "one_host": "true"}.items():
        (problem,) = problems_of(f"{VALID}    {key}: {value}\n")
        said = "unknown key; it is for hypervisors whose adapter another package brings"
        assert problem == f"config.yaml:8: hypervisors[0].{key}: {said}"


@pytest.mark.parametrize("settings", ["", "    settings: {farm: /a}\n"])
def test_the_same_written_twice_is_refused(cells, load_text, problems_of, settings):
    second = f"  - name: lab-2\n    type: cells\n{settings}"
    (problem,) = problems_of(f"{CELLS}{settings}{second}")
    assert "every guest would be found twice" in problem
    assert (
        len(load_text(f"{CELLS}{settings}{second.replace('/a', '/b')}").endpoints if settings else "ok") == 2
    )


def test_a_package_that_calls_its_adapter_as_one_of_fencers_changes_nothing(tmp_path, load_text):
    with on_path(
        install(tmp_path / "site", "impostor", {"fencer.hypervisors": {"libvirt": "impostor:ADAPTER"}})
    ):
        assert load_text(VALID).endpoints == (LibvirtEndpoint("lab", "qemu:///system"),)


def test_no_adapter_is_loaded_for_a_look_at_the_file(tmp_path, load_text):
    with on_path(
        install(tmp_path / "site", "broken", {"fencer.hypervisors": {"cells": "no_such_module:ADAPTER"}})
    ):
        assert load_text(CELLS).endpoints == (AdapterEndpoint("lab", "cells"),)


def test_an_editor_can_tell_whose_section_it_is():
    others = json.loads(json_schema())["$defs"]["AdapterSection"]["properties"]["type"]
    assert others["not"] == {"enum": list(OWN_TYPES)}
    here = ("hypervisors", 0)
    assert [it.__name__ for it in sections_at(here, {here: "cells"}.get)] == ["AdapterSection"]

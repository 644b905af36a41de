"""k9s' keys for nodes: each runs a command that exists, and what changes something asks first."""

import re
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from fencer.cli.main import cli

FILE = Path(__file__).parents[2] / "config/k9s/plugins.yaml"
PLUGINS = yaml.safe_load(FILE.read_text())["plugins"]
ACTING = {"fence", "unfence", "pause", "resume", "drain", "shutdown", "start", "drill"}
TAKEN = set("ACJMNOPRSXZ")
"""k9s' own, with Shift, in its views of nodes: sorting, and jumps."""
GIVEN = {"NAME": "k8s-2", "CONTEXT": "lab"}
"""Some of what k9s puts in everywhere."""


def words_of(plugin):
    values = GIVEN | {
        f"INPUT_{one['name'].upper()}": one.get("default", "storage") for one in plugin.get("inputs", ())
    }
    return [re.sub(r"\$(\w+)", lambda found: values[found[1]], word) for word in plugin["args"]]


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)
def test_its_command_exists_with_these_options(plugin):
    words = words_of(plugin)[3:]
    context = click.Context(cli)
    _, command, rest = cli.resolve_command(context, words)
    with command.make_context(words[0], rest, parent=context) as parsed:
        assert parsed.params.get("node", "k8s-2") in {"k8s-2", None}


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)
def test_what_changes_something_is_dangerous_and_asks(plugin):
    words = plugin["args"]
    acts = words[3] in ACTING and "--dry-run" not in words
    assert (plugin.get("dangerous", False), plugin.get("confirm", False)) == (acts, acts)
    assert plugin["background"] is False


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)
def test_it_has_what_k9s_asks_for_and_no_more(plugin):
    needed = {"shortCut", "description", "scopes", "command", "args", "background"}
    assert needed <= set(plugin) <= needed | {"dangerous", "confirm", "inputs"}
    assert plugin["scopes"] == ["nodes"]
    assert len(plugin.get("inputs", ())) <= 5
    for one in plugin.get("inputs", ()):
        assert one["required"] is True, "k9s takes no default without it"
        assert f"$INPUT_{one['name'].upper()}" in plugin["args"]


def test_no_key_is_taken_twice_or_by_k9s_itself():
    keys = [plugin["shortCut"].removeprefix("Shift-") for plugin in PLUGINS.values()]
    assert len(set(keys)) == len(keys)
    assert not TAKEN.intersection(keys)


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)
def test_what_is_put_in_becomes_no_part_of_the_script(plugin, tmp_path):
    """And the script has nothing that k9s would take for one of its own variables."""
    shell, flag, script, *_ = (plugin["command"], *plugin["args"])
    assert (shell, flag) == ("sh", "-c")
    assert re.findall(r"\$\{?!?[\w-]+", script) == []
    for name, text in {"fencer": 'printf "<%s>" "$@" >"$TOLD"', "less": "cat >/dev/null"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    nasty = '$(touch owned); it\'s "so"'
    words = [nasty if word.startswith("$") else word for word in plugin["args"]]
    told = tmp_path / "told"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TOLD": str(told)}
    subprocess.run([shell, *words], env=environment, cwd=tmp_path, check=True)
    assert told.read_text() == "".join(f"<{word}>" for word in words[3:])
    assert not (tmp_path / "owned").exists()

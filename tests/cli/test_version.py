"""``fencer version``: what somebody who asks for help is asked for first."""

import json
import platform
from importlib.metadata import version

import pytest

from fencer import DISTRIBUTION
from fencer.guest import cli as guest
from tests.cli.lab import Lab


def test_it_names_what_is_installed_and_where_the_configuration_is(tmp_path):
    told = dict(
        line.split("   ", 1) for line in Lab().run("version", "-c", str(tmp_path)).stdout.splitlines()
    )
    told = {what: text.strip() for what, text in told.items()}
    assert told["fencer"] == version(DISTRIBUTION)
    assert told["Python"] == platform.python_version()
    assert told["Kubernetes client"] == version("kubernetes")
    assert told["proxmoxer"] == version("proxmoxer")
    assert told["configuration"] == str(tmp_path)


def test_a_configuration_that_is_not_there_is_said():
    assert Lab().run("version", "-c", "/nowhere.yaml").stdout.endswith("/nowhere.yaml: no such file\n")


def test_what_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "libvirt", None)
    assert "libvirt library     not installed" in Lab().run("version").stdout
    assert json.loads(Lab().run("version", "-o", "json").stdout)["libvirt_library"] is None


def test_the_library_s_number_reads_as_people_write_it(monkeypatch):
    class Binding:
        @staticmethod
        def getVersion():  # noqa: N802 - libvirt's own name
            return 11_003_001

    monkeypatch.setitem(__import__("sys").modules, "libvirt", Binding)
    assert "libvirt library     11.3.1" in Lab().run("version").stdout


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_the_guest_part_tells_its_own(words, capsys):
    try:
        code = guest.main(words)
    except SystemExit as end:
        code = end.code
    assert (code, capsys.readouterr().out) == (0, f"fencer-guest {version(DISTRIBUTION)}\n")

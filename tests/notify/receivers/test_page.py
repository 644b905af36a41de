"""docs/notifications.md: what it says that others shall type, or can read, is so."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from fencer.config.load import load
from fencer.core.text import printable
from fencer.notify.receivers.build import receiver
from fencer.notify.settings import ALL
from fencer.wording.occasions import Occasion
from tests.config.samples import VALID
from tests.notify.receivers.labs import message, webhook
from tests.support.debs import program

PAGE = Path(__file__).parents[3] / "docs" / "notifications.md"


def block(title: str) -> str:
    """Return what stands between two marks of the page."""
    found = re.search(
        rf"<!-- {re.escape(title)}: checked by a test -->\n(.*?)<!-- end of", PAGE.read_text(), re.DOTALL
    )
    assert found is not None
    return textwrap.dedent(found[1].strip("\n"))


@pytest.mark.e2e
def test_alertmanagers_own_tool_takes_the_configuration_and_routes_as_the_page_says(tmp_path):
    amtool = program("prometheus-alertmanager", "usr/bin/amtool")
    config = tmp_path / "alertmanager.yml"
    config.write_text(block("alertmanager.yml"))

    def said(*words):
        done = subprocess.run([amtool, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    assert "SUCCESS" in said("check-config", str(config))
    routes = ("config", "routes", "test", f"--config.file={config}")
    assert said(*routes, "alertname=FencerAlarm", "severity=critical", "node=k8s-2") == "pager"
    assert said(*routes, "alertname=FencerFenced", "severity=warning", "node=k8s-2") == "mail"


def test_the_page_shows_what_a_webhook_gets(tmp_path):
    with webhook(tmp_path) as lab:
        lab.receiver.send([message()])
        [told] = lab.told()
    assert json.loads(block("a webhook's body")) == told.raw


def test_the_page_names_each_occasion():
    text = PAGE.read_text()
    for occasion in ALL:
        assert f"`{occasion.value}`" in text
    assert frozenset(Occasion) == ALL
    assert printable(text.replace("\n", "")) == text.replace("\n", "")


def test_each_example_is_a_receiver_that_the_configuration_takes(tmp_path):
    examples = re.findall(r"^    - name: .*\n(?:    .*\n)+", PAGE.read_text(), re.MULTILINE)
    receivers = "".join(examples).replace("    #", "    ").replace("  #", "  ")
    path = tmp_path / "fencer.yaml"
    path.write_text(f"{VALID}notify:\n  receivers:\n{receivers}")
    made = [receiver(one, "lab", "") for one in load(path).notify.receivers]
    assert [type(one).__name__ for one in made] == [
        "Ntfy",
        "Gotify",
        "Alertmanager",
        "Webhook",
        "Mail",
        "Apprise",
    ]
    first = re.search(r"^    notify:\n(?:    .*\n)+", PAGE.read_text(), re.MULTILINE)
    assert first is not None
    path.write_text(VALID + textwrap.dedent(first[0]))
    assert [one.name for one in load(path).notify.receivers] == ["phone", "alerts"]

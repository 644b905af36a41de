"""The configuration in force, as YAML that says where each value came from."""

from pathlib import Path

from fencer.config.document import parse
from fencer.config.load import check
from fencer.config.show import render, show
from tests.config.samples import EXAMPLES, FULL, VALID, WITH_OTHERS, keys


def shown(text: str) -> str:
    return render(check(parse(text.encode(), "f.yaml")))


def test_values_say_their_line_and_defaults_say_so():
    lines = shown(f"{VALID}policy:\n  poll_s: 2.5\n  confirm_s: 5\n").splitlines()
    assert lines[:17] == [
        "# f.yaml",
        "mode: armed  # line 1",
        "kubernetes:",
        "  kubeconfig: /etc/fencer/kubeconfig  # line 3",
        "  context: null  # default",
        "  servers: []  # default",
        "  unauthenticated: false  # default",
        "hypervisors:",
        "  - name: lab  # line 5",
        "    type: libvirt  # line 6",
        "    uri: qemu:///system  # line 7",
        "    unauthenticated: false  # default",
        "    power:",
        "      mapped: false  # default",
        "      uuids: []  # default",
        "    host_power: []  # default",
        "nodes: {}  # default",
    ]
    assert "  poll_s: 2.5  # line 9" in lines
    assert "  confirm_s: 5  # line 10" in lines
    assert "  lease_silent_s: 40  # default" in lines
    journal = lines.index("journal:")
    assert lines[journal + 1 : journal + 5] == [
        "  enabled: true  # default",
        f"  file: {Path.cwd() / 'f.journal.db'}  # default",
        "  keep_days: 400  # default",
        "  max_mb: 100  # default",
    ]
    assert f"state_file: {Path.cwd() / 'f.state.jsonl'}  # default" in lines
    assert lines[-4:] == [
        "web:",
        "  enabled: true  # default",
        '  listen: "127.0.0.1:9721"  # default',
        "  names: []  # default",
    ]
    notify = lines.index("notify:")
    assert lines[notify + 1 : notify + 6] == [
        "  receivers: []  # default",
        "  source: null  # default",
        "  remind_s: 14400  # default",
        "  page_url: null  # default",
        f"  told_file: {Path.cwd() / 'f.notified.json'}  # default",
    ]


def test_every_key_is_shown(cells):
    document = parse(shown(WITH_OTHERS).encode(), "shown")
    written = {tuple(part for part in place if isinstance(part, str)) for place in document.lines}
    assert [place for place, _ in keys() if place not in written] == []


def test_what_is_shown_reads_back_as_the_same_configuration(cells):
    odd = (
        FULL.replace("k8s 1", 'k8s: \\"1\\" # \U0001f600')
        .replace("lab/k8s", '"lab/k8s')
        .replace("\U0001f600", '\U0001f600"')
    )
    for text in [VALID, WITH_OTHERS, odd, f"{VALID}nodes: {{on: lab/on, '12': lab/12, null: lab/null}}\n"]:
        config = check(parse(text.encode(), "f.yaml")).config
        assert check(parse(shown(text).encode(), "shown")).config == config


def test_numbers_keep_all_their_digits():
    text = f"{VALID}policy: {{settle_s: 0.1234567890123456, unfence_alarm_s: 1e17, unfence_blind_s: 1e-7}}\n"
    assert check(parse(shown(text).encode(), "shown")).config == check(parse(text.encode(), "f.yaml")).config


def test_examples_can_be_shown():
    for file in EXAMPLES:
        assert show(file).startswith(f"# {file}\nmode: observe")
